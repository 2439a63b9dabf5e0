"""Lines for people about what is being done; on a terminal, a spinner while it goes on."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.status import Status

from scpslab.cli.terminal import harmless


def warn(text: str) -> None:
    """Prints what is not as it should be, one line each; the command goes on."""
    for line in text.splitlines():
        print(f"warning: {harmless(line)}", file=sys.stderr)


class Notes:
    """Prints notes. One about work that is under way stands beside a spinner until something else happens."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._status: Status | None = None

    def __call__(self, text: str, /, *, is_under_way: bool = False) -> None:
        """Shows a note."""
        self.settle()
        if not is_under_way:
            self.console.print(text, highlight=False, soft_wrap=True)
        elif self.console.is_terminal:
            self._status = self.console.status(f"{text} …")
            self._status.start()

    def settle(self) -> None:
        """Takes the spinner away."""
        if self._status:
            self._status.stop()
            self._status = None
