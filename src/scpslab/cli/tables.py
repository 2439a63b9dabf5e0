"""The consoles to which commands print: as wide as the terminal, or wide enough for tables when the output goes into a file or a pipe."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeVar

import typer
from rich.console import Console
from rich.text import Text

from scpslab.cli.terminal import harmless
from scpslab.results.table import Summary, as_table, notes

WIDE = 180


class Format(StrEnum):
    """The output format of numbers."""

    CSV = "csv"
    JSON = "json"
    TABLE = "table"


Found = TypeVar("Found")


def print_for_programs(found: Found, format_: Format, as_csv: Callable[[Found], str], as_json: Callable[[Found], str]) -> None:
    """Prints results as CSV or JSON, byte for byte."""
    typer.echo(as_csv(found) if format_ is Format.CSV else as_json(found), nl=False)


class _PlainConsole(Console):
    """A console that shows control characters instead of sending them: Rich removes only a few of them from text, and not the escape."""

    def render_str(self, text: str, **settings: Any) -> Text:
        """The text as Rich shows it. All printed text passes through this method, in tables too."""
        return super().render_str(harmless(text), **settings)


def table_console(*, stderr: bool = False) -> Console:
    """The console for tables."""
    console = plain_console(stderr=stderr)
    return console if console.is_terminal else plain_console(stderr=stderr, width=WIDE)


def plain_console(*, stderr: bool = False, width: int | None = None) -> Console:
    """A console that prints text as it is: titles, reasons and cell names come from files, so "[/b]" in one of them is not markup."""
    return _PlainConsole(stderr=stderr, width=width, markup=False, emoji=False)


def print_summary(summary: Summary, console: Console) -> None:
    """Prints the table of a run, and the notes that a reader of the numbers needs."""
    console.print(as_table(summary))
    for line in notes(summary):
        console.print(line, style="dim", highlight=False)
