"""The consoles to which commands print: as wide as the terminal, or wide enough for tables when the output goes into a
file or a pipe.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Protocol, TypeVar

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scpslab.analysis import table
from scpslab.analysis.table import Summary
from scpslab.cli.terminal import harmless

WIDE = 180


class Format(StrEnum):
    """The output format of numbers."""

    CSV = "csv"
    JSON = "json"
    MARKDOWN = "markdown"
    TABLE = "table"


Found = TypeVar("Found")
Found_contra = TypeVar("Found_contra", contravariant=True)


def print_for_programs(
    found: Found, format_: Format, as_csv: Callable[[Found], str], as_json: Callable[[Found], str]
) -> None:
    """Prints results as CSV or JSON, byte for byte."""
    typer.echo(as_csv(found) if format_ is Format.CSV else as_json(found), nl=False)


class Texts(Protocol[Found_contra]):
    """A module that says its numbers in every format."""

    def as_table(self, found: Found_contra, /) -> Table:
        """The table for a person."""

    def notes(self, found: Found_contra, /) -> Sequence[str]:
        """What a reader of the table needs to know."""

    def as_csv(self, found: Found_contra, /) -> str:
        """The numbers as CSV."""

    def as_json(self, found: Found_contra, /) -> str:
        """The numbers as JSON."""


def print_numbers(found: Found, format_: Format, texts: Texts[Found]) -> None:
    """Prints results in the format that was asked for."""
    if format_ is Format.TABLE:
        print_table(found, table_console(), texts)
    elif format_ is Format.MARKDOWN:
        typer.echo(harmless(as_markdown(texts.as_table(found), texts.notes(found))), nl=False)
    else:
        print_for_programs(found, format_, texts.as_csv, texts.as_json)


def as_markdown(table: Table, notes: Sequence[str] = ()) -> str:
    """A table in Markdown, below its title and above its notes; rows that stand out in a terminal are bold."""
    heads = [_cell(column.header) for column in table.columns]
    lines = [f"**{_cell(table.title)}**", ""] if table.title else []
    lines += [_row(heads), _row(["---:" if column.justify == "right" else "---" for column in table.columns])]
    for row, cells in zip(
        table.rows, zip(*(map(_cell, column.cells) for column in table.columns), strict=True), strict=True
    ):
        lines.append(_row([f"**{cell}**" if cell and row.style == "bold" else cell for cell in cells]))
    lines += ["", *(f"- {_cell(note)}" for note in notes)]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(content: object) -> str:
    """Text that Markdown shows as it is."""
    return re.sub(r"([\\|*`<])", r"\\\1", str(content)).strip()


def print_table(found: Found, console: Console, texts: Texts[Found]) -> None:
    """Prints a table, and the notes that a reader of its numbers needs."""
    console.print(texts.as_table(found))
    for line in texts.notes(found):
        console.print(line, style="dim", highlight=False)


class _PlainConsole(Console):
    """A console that shows control characters instead of sending them: Rich removes only a few of them from text, and
    not the escape.
    """

    def render_str(self, text: str, **settings: Any) -> Text:
        """The text as Rich shows it. All printed text passes through this method, in tables too."""
        return super().render_str(harmless(text), **settings)


def table_console(*, stderr: bool = False) -> Console:
    """The console for tables."""
    console = plain_console(stderr=stderr)
    return console if console.is_terminal else plain_console(stderr=stderr, width=WIDE)


def plain_console(*, stderr: bool = False, width: int | None = None) -> Console:
    """A console that prints text as it is: titles, reasons and cell names come from files, so "[/b]" in one of them is
    not markup.
    """
    return _PlainConsole(stderr=stderr, width=width, markup=False, emoji=False)


def print_summary(summary: Summary, console: Console) -> None:
    """Prints the table of a run."""
    print_table(summary, console, table)
