"""Engine host runs commands as root: it says so, and takes others' files only when told to."""

import io
import os

import pytest
from rich.console import Console

from scpslab.cli.run import check_consent
from scpslab.core import folders
from scpslab.core.errors import UsageError

SCENARIO = "kind: scenario\nversion: 1\ntitle: one\ntopology: point_to_point\n"
CAMPAIGN = "kind: campaign\nversion: 1\ntitle: two\nruns:\n- {scenario: one.yaml}\n"


@pytest.fixture
def console():
    return Console(file=io.StringIO())


@pytest.fixture
def files(tmp_path):
    """A scenario that others may write, and a campaign of it that they may not."""
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    for path, text, mode in ((one, SCENARIO, 0o666), (two, CAMPAIGN, 0o644)):
        path.write_text(text)
        path.chmod(mode)
    return one, two


def test_it_says_what_commands_may_do(console):
    check_consent("host", "fy97/fig04:test", False, console)
    assert "as root" in console.file.getvalue()


def test_a_file_that_others_may_write_is_refused_unless_it_is_trusted_also_of_a_campaign(console, files):
    one, two = files
    for path in files:
        with pytest.raises(UsageError, match=r"one\.yaml: found a file that others may write; expected .*--trust"):
            check_consent("host", str(path), False, console)
    check_consent("host", str(one), True, console)
    one.chmod(0o644)
    check_consent("host", str(one), False, console)
    check_consent("host", str(two), False, console)


def test_the_owner_counts_and_by_sudo_the_caller(monkeypatch, files):
    _, path = files
    owner = path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    monkeypatch.setattr(folders, "ROOT", owner + 2)
    monkeypatch.delenv("SUDO_UID", raising=False)
    assert folders.somebody_elses(path) == f"a file of user {owner}"
    monkeypatch.setenv("SUDO_UID", str(owner))
    assert folders.somebody_elses(path) == ""
