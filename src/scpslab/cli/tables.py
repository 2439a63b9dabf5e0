"""Where commands print: as wide as the terminal, and as wide as tables need to be when the output goes into a file or a pipe."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from rich.console import Console
from rich.text import Text

from scpslab.cli.terminal import harmless
from scpslab.results.table import Summary, as_table, notes

WIDE = 180


class Format(StrEnum):
    """How numbers are written."""

    CSV = "csv"
    JSON = "json"
    TABLE = "table"


class _PlainConsole(Console):
    """A console that shows control characters instead of sending them: Rich takes only a few of them out of text, and not the escape."""

    def render_str(self, text: str, **settings: Any) -> Text:
        """The text as Rich shows it; all text that is printed, in tables too, comes through here."""
        return super().render_str(harmless(text), **settings)


def table_console(*, stderr: bool = False) -> Console:
    """The console for tables."""
    console = plain_console(stderr=stderr)
    return console if console.is_terminal else plain_console(stderr=stderr, width=WIDE)


def plain_console(*, stderr: bool = False, width: int | None = None) -> Console:
    """A console that prints text as it is: titles, reasons and cell names come from files, and "[/b]" in one of them is no markup."""
    return _PlainConsole(stderr=stderr, width=width, markup=False, emoji=False)


def print_summary(summary: Summary, console: Console) -> None:
    """Prints the table of a run, and what a reader must know beside the numbers."""
    console.print(as_table(summary))
    for line in notes(summary):
        console.print(line, style="dim", highlight=False)
