"""Notes: lines in a file, a spinner on a terminal while work goes on."""

import io

import pytest
from rich.console import Console

from scpslab.cli.tables import Notes
from scpslab.setup.job import Job


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_step_says_that_it_begins_and_how_long_it_took(tmp_path, is_broken):
    said = []
    job = Job("kernel", tmp_path, tmp_path / "target", tmp_path / "log", [].append)
    job.say = lambda text, is_under_way=False: said.append(f"{text} …" if is_under_way else text)

    def work():
        with job.step("compile"):
            assert said == ["kernel: compile …"]
            if is_broken:
                raise OSError("full")

    if is_broken:
        with pytest.raises(OSError, match="full"):
            work()
    else:
        work()
    assert said[1].startswith(f"kernel: compile: {'ended after ' if is_broken else ''}0.")


@pytest.mark.parametrize("is_terminal", [False, True])
def test_only_a_terminal_is_shown_what_is_under_way_by_a_spinner_that_goes_before_the_next_line(is_terminal):
    file = io.StringIO()
    notes = Notes(Console(file=file, force_terminal=is_terminal, width=80))
    notes("kernel: compile", is_under_way=True)
    notes("kernel: compile: 4.0 s")
    shown = file.getvalue()
    if is_terminal:
        assert "kernel: compile …" in shown
        # The cursor is shown again before the line stands.
        assert shown.index("\x1b[?25h") < shown.index("kernel: compile: 4.0 s")
    else:
        assert shown == "kernel: compile: 4.0 s\n"
