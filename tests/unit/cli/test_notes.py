"""Notes: lines in a file, a spinner on a terminal while work goes on."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from scpslab.cli.tables import Notes
from tools.build.job import Job


@pytest.fixture
def job(tmp_path):
    """A build whose notes are kept."""
    return Job("kernel", tmp_path, tmp_path / "target", tmp_path / "log", [].append)


def test_a_step_says_that_it_begins_and_how_long_it_took(job):
    said: list[str] = []
    job.say = lambda text, is_under_way=False: said.append(f"{text} …" if is_under_way else text)
    with job.step("compile"):
        assert said == ["kernel: compile …"]
    assert said[1].startswith("kernel: compile: 0.")


def test_a_step_that_fails_says_when(job):
    said: list[str] = []
    job.say = lambda text, is_under_way=False: said.append(f"{text} …" if is_under_way else text)
    with pytest.raises(OSError, match="full"), job.step("compile"):
        raise OSError("full")
    assert said[1].startswith("kernel: compile: ended after 0.")


def test_in_a_file_only_what_is_over_is_a_line():
    file = io.StringIO()
    notes = Notes(Console(file=file))
    notes("kernel: compile", is_under_way=True)
    notes("kernel: compile: 4.0 s")
    assert file.getvalue() == "kernel: compile: 4.0 s\n"


def test_on_a_terminal_the_spinner_goes_before_the_next_line():
    file = io.StringIO()
    notes = Notes(Console(file=file, force_terminal=True, width=80))
    notes("kernel: compile", is_under_way=True)
    notes("kernel: compile: 4.0 s")
    shown = file.getvalue()
    assert "kernel: compile …" in shown
    # The cursor is shown again before the line stands.
    assert shown.index("\x1b[?25h") < shown.index("kernel: compile: 4.0 s")
