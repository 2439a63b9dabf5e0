"""Makes text of files and guests safe for the terminal: terminals obey control characters, so these are shown instead
of sent. And warnings, and pages that messages name.
"""

import re
import sys
import warnings
from pathlib import Path
from typing import Any

from scpslab.core.errors import UsageError, harmless
from scpslab.core.project import ROOT

DOCS = ROOT / "docs"
PAGE = re.compile(r"(?<![\w./-])docs/([\w/-]+)\.md(#[\w-]+)?")


def for_readers(text: str) -> str:
    """A message with each page as the command that shows it: whoever installed the wheel sees no folder docs/."""

    def command(page: re.Match[str]) -> str:
        is_page = (DOCS / f"{page[1]}.md").is_file()
        return f"scpslab docs {page[1]}{page[2] or ''}" if is_page else page[0]

    return harmless(PAGE.sub(command, text))


def printable(path: Path | None) -> Path | None:
    """The callback of a word that names what a command makes: whoever gets it must be able to show, type and copy the
    name.

    Raises:
        UsageError: the path has characters that cannot be printed.
    """
    if path is not None and not str(path).isprintable():
        expected = "expected a path without them. Choose another name."
        raise UsageError(f"{str(path)!a}: found characters that cannot be printed; {expected}")
    return path


def warn(text: str) -> None:
    """Prints what is not as it should be, one line each; the command goes on."""
    for line in text.splitlines():
        print(f"warning: {for_readers(line)}", file=sys.stderr)


def tell_warnings() -> None:
    """Shows warnings of libraries like those of this program: they name letters of labels as they stand in a file."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        warn(str(message))

    warnings.showwarning = show
