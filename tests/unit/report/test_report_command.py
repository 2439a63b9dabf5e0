"""How to run the same again: the command in manifest and report, taken to a shell; the program that ran."""

import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scpslab.analysis.report import render, safe_command
from scpslab.core.installation import commit_of, version
from scpslab.running.run_plan import command

pytestmark = pytest.mark.slow

FAKE = Path(__file__).parents[2] / "data" / "run_with_fake_engine.py"
SETTINGS = (
    "workloads.transfer.size=100 kB",
    "workloads.transfer.segment=512 B",
    "parameters.data_rate=1 Mbit/s",
    "parameters.data_delay=100 ms",
    "sweep.ber=[0, 1e-05]",
    'title=It\'s $HOME; `more` "words" & <b>',
)


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """Runs a line in a shell that knows a `scpslab` whose engine starts no lab; gives the folder `runs` of that
    line.
    """
    programs, memory = tmp_path / "bin", tmp_path / "memory"
    programs.mkdir()
    memory.mkdir()
    (programs / "scpslab").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE}" "{memory}" 0 "$@"\n')
    (programs / "scpslab").chmod(0o755)
    monkeypatch.setenv("SCPSLAB_CACHE", str(tmp_path / "cache"))

    def run(line: str, name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
        subprocess.run(["sh", "-c", line], cwd=folder, check=True, capture_output=True, env=environment)
        return folder / "runs"

    return run


def plans_of(runs: Path) -> dict[str, str]:
    return {str(path.relative_to(runs)): path.read_text() for path in runs.glob("*/cells/*/plan.json")}


def test_the_line_in_the_report_gives_the_same_plans_again(shell):
    line = "scpslab run fy97/fig04:test " + " ".join(
        f"--set '{text.replace(chr(39), chr(39) + chr(92) + chr(39) + chr(39))}'" for text in SETTINGS
    )
    first = shell(line, "first")
    (run,) = first.iterdir()
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["settings"] == list(SETTINGS)
    assert manifest["program"]["version"] == version()

    page = render(run)
    shown = html.unescape(re.search(r'<pre class="command"><code>(.*?)</code></pre>', page, re.DOTALL)[1])
    assert shown == manifest["command"]
    assert plans_of(shell(shown, "second")) == plans_of(first) != {}
    assert all(html.escape(text, quote=False).split("&")[0].split('"')[0].split("'")[0] in page for text in SETTINGS)
    assert f"Made by scpslab {version()}" in page
    assert "This run changed conditions of its scenario, so it decides no finding" in page
    assert "workloads.transfer.segment: 512 B instead of 1400 B" in page
    assert "What the scenario says of itself, without these changes: 4,000,000 bytes" in page


def test_a_variant_with_other_conditions_is_not_described_as_the_whole_scenario(shell):
    (run,) = shell("scpslab run fy97/fig04:test", "runs-of-test").iterdir()
    page = render(run)
    assert "This run changed conditions" not in page
    other = "this variant has other conditions (workloads.transfer.size: 100 kB instead of 4000000 B): 4,000,000 bytes"
    assert other in page


def test_an_engine_other_than_the_default_is_in_the_command():
    assert command("fy97/fig04", "live", ["repeats=1"]) == "scpslab run fy97/fig04 --engine live --set repeats=1"


def test_a_run_of_an_earlier_version_is_read_and_says_that_nothing_is_recorded(run_dir):
    page = render(run_dir)
    assert "The command is not recorded" in page
    assert "of a version that is not recorded" in page


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        ("scpslab run links/loss; rm -rf x", "scpslab run 'links/loss;' rm -rf x"),
        ("scpslab run $(date)", "scpslab run '$(date)'"),
        ("rm -rf x", None),
        ("scpslab run 'open", None),
        ("scpslab run a\nrm -rf x", None),
        (["scpslab", "run"], None),
        (None, None),
    ],
)
def test_a_line_of_a_stranger_s_folder_starts_nothing_else(recorded, shown):
    assert safe_command({"command": recorded}) == shown


def git(folder: Path, *words: str) -> str:
    words = ("git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words)
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def test_a_clone_s_commit_is_known_and_whether_the_program_was_changed(tmp_path):
    assert commit_of(tmp_path) is None
    git(tmp_path, "init", "-q")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("1")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    found = commit_of(tmp_path)
    assert found is not None
    assert (found.id, found.changed) == (git(tmp_path, "rev-parse", "HEAD"), False)
    (tmp_path / "mine.yaml").write_text("a scenario of the user's")
    assert commit_of(tmp_path) == found
    (tmp_path / "src" / "b.py").write_text("2")
    assert commit_of(tmp_path).changed
    assert commit_of(tmp_path / "src") is None, "a folder in a clone of something else"
