"""A problem: what is wrong at a place of a plan or of a file that a person writes, and what to do about it.

Only the standard library is used: plans are read inside the guest too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Problem:
    """What was found at a key path, what was expected instead, and one or more sentences of advice.

    `subject`: what has the problem, where the key path alone does not say it.
    """

    at: KeyPath
    found: str
    expected: str
    advice: str = ""
    subject: str = ""

    def within(self, *around: str | int) -> Problem:
        """The same, seen from the part around."""
        return replace(self, at=(*around, *self.at))

    def __str__(self) -> str:
        subject, advice = self.subject and f"{self.subject}: ", self.advice and f". {self.advice}"
        return f"{subject}found {self.found}; expected {self.expected}{advice}"


def dotted(at: KeyPath, first: int = 1) -> str:
    """A key path as text: `workloads[1].size`; items count from `first`: 1 in files of people, as after --set."""
    text = ""
    for part in at:
        text += f"[{part + first}]" if isinstance(part, int) else f".{part}" if text else part
    return text


class UnfitError(ValueError):
    """A value that does not fit; `problem` says why, for whoever knows its place."""

    def __init__(self, found: str, expected: str, advice: str = "", subject: str = "") -> None:
        self.problem = Problem((), found, expected, advice, subject)
        super().__init__(str(self.problem))

    def at(self, at: KeyPath, advice: str = "") -> Problem:
        """The problem at its place, with this advice if it has none of its own."""
        return replace(self.problem, at=at, advice=self.problem.advice or advice)
