"""The tree of errors. Every error has an exit code; only the outermost layer prints it.

    ScpslabError
    ├── UsageError          2  the command line is not valid
    ├── ScenarioError       2  a scenario, topology or data file is not valid
    ├── CapabilityError     3  this machine lacks something; the message names the fix
    ├── LabError            4  the lab broke
    └── ResultError         5  a run folder cannot be read

Messages have one shape: `<where>: <what was found>; expected <what>. <what to do>.`
"""

from __future__ import annotations

from typing import ClassVar


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
