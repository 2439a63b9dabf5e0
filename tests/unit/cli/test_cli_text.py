"""Text of scenarios, reasons and cells is printed and drawn as it stands, whatever it looks like."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table

from scpslab.cli.tables import plain_console, table_console
from scpslab.figures.canvas import new_figure, save
from scpslab.running.progress import RunProgress

EVIL = ["[/b] closes nothing", "[red]not red[/red]", ":smile:", "a [link=x] b"]


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
def test_progress_shows_names_and_reasons_as_they_are(evil):
    console = plain_console()
    console.file = io.StringIO()
    with RunProgress(console, 2) as progress:
        progress.scenario = evil
        progress.cell_done("r1", {"status": "failed", "reason": evil, "virtual_s": 1.0}, cached=False)

    assert evil in printed(console)


@pytest.mark.parametrize("title", ["$", "$\\nothing$", "5 $ and 6 $"])
def test_pictures_show_a_dollar_as_a_dollar(tmp_path, title):
    with new_figure(title, title, title) as (figure, axes):
        axes.plot([0, 1], [0, 1], label=title)
    paths = save(figure, tmp_path, "picture", ("png",))

    assert paths[0].stat().st_size > 0
