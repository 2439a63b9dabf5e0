"""Where commands print: as wide as the terminal, and as wide as tables need to be when the output goes into a file or a pipe."""

from __future__ import annotations

from rich.console import Console

WIDE = 180


def table_console(*, stderr: bool = False) -> Console:
    """The console for tables."""
    console = plain_console(stderr=stderr)
    return console if console.is_terminal else plain_console(stderr=stderr, width=WIDE)


def plain_console(*, stderr: bool = False, width: int | None = None) -> Console:
    """A console that prints text as it is: titles, reasons and cell names come from files, and "[/b]" in one of them is no markup."""
    return Console(stderr=stderr, width=width, markup=False, emoji=False)
