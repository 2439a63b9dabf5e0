"""Prints reports, and has the consoles to which commands print: as wide as the terminal, or wide enough for tables when
the output goes into a file or a pipe.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scpslab.cli.terminal import for_readers
from scpslab.core.errors import harmless

if TYPE_CHECKING:
    # Commands without results have consoles, too.
    from scpslab.analysis.output import Report

WIDE = 180


class Format(StrEnum):
    """The output format of numbers."""

    CSV = "csv"
    JSON = "json"
    TABLE = "table"


FormatOption = Annotated[
    Format,
    typer.Option("--format", help="Output format: a table to read; csv or json for other programs."),
]


def print_report(report: Report, format_: Format) -> None:
    """Prints a report in the format that was asked for; CSV and JSON byte for byte."""
    match format_:
        case Format.TABLE:
            print_table(report, table_console())
        case Format.CSV:
            typer.echo(report.csv, nl=False)
        case Format.JSON:
            typer.echo(report.json, nl=False)


def print_table(report: Report, console: Console) -> None:
    """Prints the table of a report, and the notes that a reader of its numbers needs."""
    console.print(as_table(report))
    for line in report.notes:
        console.print(line, style="dim", highlight=False)


def as_table(report: Report) -> Table:
    """The table of a report for a terminal."""
    shown = Table(title=report.title or None, title_justify="left", header_style="bold")
    for column in report.columns:
        shown.add_column(
            column.name,
            justify="right" if column.is_number else "left",
            overflow="fold" if column.folds else "ellipsis",
            style=column.style,
        )
    for row in report.rows:
        if row.begins_section:
            shown.add_section()
        cells = [cell if isinstance(cell, str) else Text(harmless(cell[0]), cell[1]) for cell in row.cells]
        shown.add_row(*cells, style="bold" if row.is_bold else None)
    return shown


class _PlainConsole(Console):
    """A console that shows control characters instead of sending them: Rich removes only a few of them from text, and
    not the escape.
    """

    def render_str(self, text: str, **settings: Any) -> Text:
        """The text as Rich shows it. All printed text passes through this method, in tables too."""
        return super().render_str(for_readers(text), **settings)


def table_console(*, stderr: bool = False) -> Console:
    """The console for tables."""
    console = plain_console(stderr=stderr)
    return console if console.is_terminal else plain_console(stderr=stderr, width=WIDE)


def plain_console(*, stderr: bool = False, width: int | None = None) -> Console:
    """A console that prints text as it is: titles, reasons and cell names come from files, so "[/b]" in one of them is
    not markup.
    """
    return _PlainConsole(stderr=stderr, width=width, markup=False, emoji=False)


def say_to(console: Console) -> Callable[[str], None]:
    """What prints notes as lines."""
    return partial(console.print, highlight=False, soft_wrap=True)
