"""Engine host runs commands as root: it says so, and takes others' files only when told to."""

from __future__ import annotations

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


def test_it_says_what_commands_may_do(console):
    check_consent("host", "fy97/fig04:test", False, console)
    assert "as root" in console.file.getvalue()


def test_a_file_that_others_may_write_is_refused_unless_it_is_trusted(console, tmp_path):
    path = tmp_path / "one.yaml"
    path.write_text(SCENARIO)
    path.chmod(0o666)
    with pytest.raises(UsageError, match=r"others may write; expected .*--trust"):
        check_consent("host", str(path), False, console)
    check_consent("host", str(path), True, console)
    path.chmod(0o644)
    check_consent("host", str(path), False, console)


def test_the_owner_counts_and_by_sudo_the_caller(monkeypatch, tmp_path):
    path = tmp_path / "one.yaml"
    path.write_text(SCENARIO)
    path.chmod(0o644)
    owner = path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    monkeypatch.setattr(folders, "ROOT", owner + 2)
    monkeypatch.delenv("SUDO_UID", raising=False)
    assert folders.somebody_elses(path) == f"a file of user {owner}"
    monkeypatch.setenv("SUDO_UID", str(owner))
    assert folders.somebody_elses(path) == ""


def test_every_file_of_a_campaign_counts(console, tmp_path):
    (tmp_path / "one.yaml").write_text(SCENARIO)
    (tmp_path / "two.yaml").write_text(CAMPAIGN)
    (tmp_path / "two.yaml").chmod(0o644)
    (tmp_path / "one.yaml").chmod(0o666)
    with pytest.raises(UsageError, match=r"one\.yaml: found a file that others may write"):
        check_consent("host", str(tmp_path / "two.yaml"), False, console)
