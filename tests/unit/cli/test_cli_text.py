"""Text of scenarios, reasons and cells is printed and drawn as it stands, whatever it looks like."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table

from scpslab.analysis.figures.canvas import Words, new_figure, save
from scpslab.cli.app import complain
from scpslab.cli.progress import ConsoleProgress
from scpslab.cli.tables import plain_console, table_console
from scpslab.cli.validate import validate
from scpslab.core.errors import ScenarioError
from scpslab.lab.records import Status
from scpslab.running.events import CampaignStarted, CellDone, RunInterrupted, RunStarted

EVIL = ["[/b] closes nothing", "[red]not red[/red]", ":smile:", "a [link=x] b"]
# A title for the window, a bell, an erased screen by one octet, and text that runs from right to left.
OBEYED = "a\x1b]0;b\x07c\x9b2J\u202ed"
SCENARIO = """
kind: scenario
version: 1
title: "a\\x1b[31mb"
source: a test
description: a title with an escape
topology: point_to_point
hosts: {h1: {preset: modern}, h2: {preset: modern}}
workloads:
- {kind: bulk, name: transfer, from: h1, to: h2, size: 1000 B}
"""


def printed(console: Console) -> str:
    """What a console has written into its buffer."""
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("make", [plain_console, table_console])
@pytest.mark.parametrize("evil", EVIL)
def test_consoles_print_text_as_it_is(make, evil):
    console = make()
    console.file = io.StringIO()
    table = Table(evil, title=evil)
    table.add_row(evil)

    console.print(evil)
    console.print(table)

    assert printed(console).count(evil) >= 3


@pytest.mark.parametrize("evil", EVIL)
def test_progress_shows_names_and_reasons_as_they_are(evil, tmp_path):
    console = plain_console()
    console.file = io.StringIO()
    show = ConsoleProgress(console)
    show(CampaignStarted("two", tmp_path, (evil,), 2))
    show(RunStarted(evil, tmp_path, "virtual", ("r1",)))
    show(CellDone("r1", Status("failed", evil, virtual_s=1.0), cached=False))

    assert evil in printed(console)


@pytest.mark.parametrize("title", ["$", "$\\nothing$", "5 $ and 6 $"])
def test_pictures_show_a_dollar_as_a_dollar(tmp_path, title):
    with new_figure(Words(title, title, title)) as (figure, axes):
        axes.plot([0, 1], [0, 1], label=title)
    paths = save(figure, tmp_path, "picture", ("png",))

    assert paths[0].stat().st_size > 0


@pytest.mark.parametrize("make", [plain_console, table_console])
def test_consoles_show_what_a_terminal_would_obey(make):
    console = make()
    console.file = io.StringIO()
    table = Table(OBEYED, title=OBEYED)
    table.add_row(OBEYED)

    console.print(OBEYED)
    console.print(table)

    assert printed(console).count("a\\x1b]0;b\\x07c\\x9b2J\\u202ed") == 4
    assert "\x1b" not in printed(console)


def test_errors_show_what_a_terminal_would_obey(capsys):
    complain(ScenarioError(f"a.yaml:1: {OBEYED}"))
    assert capsys.readouterr().err == "error: a.yaml:1: a\\x1b]0;b\\x07c\\x9b2J\\u202ed\n"


def test_validate_shows_what_a_terminal_would_obey(tmp_path, capsys):
    path = tmp_path / "one.yaml"
    path.write_text(SCENARIO)
    validate(str(path))
    assert "one: a\\x1b[31mb: 1 cell" in capsys.readouterr().out


def test_an_interrupted_run_says_what_is_kept_and_where(tmp_path):
    console = plain_console()
    console.file = io.StringIO()
    show = ConsoleProgress(console)
    show(RunStarted("small", tmp_path, "virtual", ("r1", "r2", "r3")))
    show(CellDone("r1", Status("completed", virtual_s=1.0), cached=False))
    show(RunInterrupted("small", tmp_path))

    assert printed(console).splitlines()[-1] == f"interrupted: 1 of 3 cells are finished, and kept in {tmp_path}"
