"""The tree of errors. Every error has an exit code; only the outermost layer prints it.

    ScpslabError
    ├── UsageError          2  the command line is not valid
    ├── ScenarioError       2  a scenario, topology or data file is not valid
    ├── CapabilityError     3  this machine lacks something; the message names the fix
    ├── LabError            4  the lab broke
    └── ResultError         5  a run folder, an archive or a stored result cannot be read
        └── NewerFormat        a newer program wrote it

Messages have one shape: `<where>: <what was found>; expected <what>. <what to do>.`

Two are no ScpslabErrors, because only their reader knows the place and the advice: MemberError, of an archive from
outside, and LimitError, of work in a child. The guest's program has its own (of units, names, JSON and plans) in its
modules: a changed error here recomputes no cell.
"""

import unicodedata
from collections.abc import Sequence
from typing import ClassVar

# Of a command that has done its work, some of which failed; and of one that the user interrupted, as shells have it.
FAILED_EXIT, INTERRUPTED_EXIT = 1, 130


def some_of(names: Sequence[str], most: int = 3) -> str:
    """The first of the names in a message, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


class ScpslabError(Exception):
    """Base of all errors that a user sees without a traceback."""

    exit_code: ClassVar[int] = 1


class UsageError(ScpslabError):
    """An invalid command line."""

    exit_code: ClassVar[int] = 2


class ScenarioError(ScpslabError):
    """Invalid input from a person's file; may hold several lines, one for each fault."""

    exit_code: ClassVar[int] = 2


class CapabilityError(ScpslabError):
    """The machine refused or lacks something."""

    exit_code: ClassVar[int] = 3


class LabError(ScpslabError):
    """The lab, or a program it started, broke."""

    exit_code: ClassVar[int] = 4


class ResultError(ScpslabError):
    """A result that cannot be read."""

    exit_code: ClassVar[int] = 5


class NewerFormat(ResultError):
    """A file that a newer program wrote: the file is intact, but this program cannot read it."""


class MemberError(ValueError):
    """An archive that is none, or one that no run has; the message says what was found."""


class LimitError(Exception):
    """Work in a child ended without an answer; the message is one line: `found …`."""


class WorkError(LimitError):
    """Work in a child broke, which is the fault of neither its input nor its limits."""


# Controls, invisible format characters (they turn the direction of text) and halves of surrogate pairs.
OBEYED = frozenset({"Cc", "Cf", "Cs"})
KEPT = "\n\t"


def harmless(text: str) -> str:
    """The text, with every character that a terminal would obey escaped as in Python: `x1b` behind a backslash.

    Line feeds and tabs stay.
    """
    if text.isprintable():
        return text
    return "".join(
        ascii(character)[1:-1] if unicodedata.category(character) in OBEYED and character not in KEPT else character
        for character in text
    )
