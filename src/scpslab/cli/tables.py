"""Where tables are printed: as wide as the terminal, and as wide as they need to be when the output goes into a file or a pipe."""

from __future__ import annotations

from rich.console import Console

WIDE = 180


def table_console(*, stderr: bool = False) -> Console:
    """The console for tables."""
    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=WIDE)
