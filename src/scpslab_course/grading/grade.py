"""What the grader says of a submission, as values: every format and page is made from these, and nothing else (decision
0704).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from scpslab_course.course.log import Line
from scpslab_course.course.model import Item
from scpslab_course.course.scoring import Expected


class Status(StrEnum):
    """graded: the score counts. held: a person decides, because something was found. ungraded: there is no score, and
    `reason` says why.
    """

    GRADED = "graded"
    HELD = "held"
    UNGRADED = "ungraded"


class Code(StrEnum):
    """The names of what the grader finds. docs/teaching.md explains each."""

    OTHER_VARIANT = "other-variant"
    SWAPPED_PLAN = "swapped-plan"
    MISSING_RUN = "missing-run"
    EDITED_RESULTS = "edited-results"
    EDITED_CAPTURES = "edited-captures"
    EDITED_RECORDS = "edited-records"
    OTHER_VERSION = "other-version"
    BROKEN_LOG = "broken-log"
    REPLAYED_LOG = "replayed-log"
    INTERRUPTED_RUN = "interrupted-run"
    LATE_PREDICTION = "late-prediction"
    COPIED_NUMBERS = "copied-numbers"
    EQUAL_TEXTS = "equal-texts"
    EQUAL_LOGS = "equal-logs"


# These take nobody's points by themselves: an interrupted run has the right bytes,
# a late prediction costs its own points and says so, and equality may be chance.
REMARKS = frozenset(
    {Code.INTERRUPTED_RUN, Code.LATE_PREDICTION, Code.COPIED_NUMBERS, Code.EQUAL_TEXTS, Code.EQUAL_LOGS}
)


@dataclass(frozen=True)
class Finding:
    """Something that a person should see: its name, and a sentence with what was found and what was expected."""

    code: Code
    says: str

    @property
    def holds(self) -> bool:
        """Whether the grade waits for a person."""
        return self.code not in REMARKS


@dataclass(frozen=True)
class Part:
    """A prediction, answer, deliverable or write-up. `earned` is None where a person gives the points, by `rubric`.

    `given` is what the student wrote, `right` the right value with its unit, for who marks.
    `is_inside` is whether an interval of a prediction holds the true number; None for everything else.
    """

    kind: str
    name: str
    question: str
    points: float
    earned: float | None
    comment: str
    given: str = ""
    rubric: tuple[Item, ...] = ()
    hints: tuple[str, ...] = ()
    is_inside: bool | None = None
    right: str = ""

    @property
    def label(self) -> str:
        """Its kind and name, which are one of a kind in a submission."""
        return f"{self.kind} {self.name}"


@dataclass(frozen=True)
class Grade:
    """The grade of one submission.

    `waiting` counts the points that a person has not given yet. `texts` and `foreign`: see classwide.wrote.

    `submitter` handed it in, as the platform says; `is_accepted`: a person has looked at what was found.
    """

    path: Path
    sha256: str = ""
    assignment: str = ""
    student: str = ""
    members: tuple[str, ...] = ()
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    parts: tuple[Part, ...] = ()
    cells: tuple[str, ...] = ()
    seconds: float = 0.0
    texts: Mapping[str, str] = field(default_factory=dict)
    foreign: tuple[str, ...] = ()
    lines: tuple[Line, ...] = ()
    expected: Expected | None = None
    numbers: Mapping[str, float] = field(default_factory=dict)
    submitter: str = ""
    is_accepted: bool = False

    @property
    def status(self) -> Status:
        """Whether the score counts."""
        if self.reason:
            return Status.UNGRADED
        return (
            Status.HELD if not self.is_accepted and any(finding.holds for finding in self.findings) else Status.GRADED
        )

    @property
    def is_final(self) -> bool:
        """Whether nothing of it waits for a person."""
        return self.status is Status.GRADED and not self.waiting

    @property
    def recipients(self) -> tuple[str, ...]:
        """The students whose grade it is: the members of the variant, or who handed in somebody else's."""
        return (self.submitter,) if self.submitter and self.submitter not in self.members else self.members

    @property
    def score(self) -> float:
        """The points that were given."""
        return sum(part.earned for part in self.parts if part.earned is not None)

    @property
    def most(self) -> float:
        """The points of all parts."""
        return sum(part.points for part in self.parts)

    @property
    def waiting(self) -> float:
        """The points that a person decides about."""
        return sum(part.points for part in self.parts if part.earned is None)

    @property
    def urgency(self) -> tuple[bool, int, int]:
        """How soon a person should look.

        Of two with equal texts, the one with more findings is rather the copy than the original.
        """
        return (
            self.status is not Status.GRADED,
            sum(finding.code is Code.COPIED_NUMBERS for finding in self.findings),
            len(self.said),
        )

    @property
    def said(self) -> tuple[str, ...]:
        """Why there is no score, or what was found, one sentence each."""
        return ((self.reason,) if self.reason else ()) + tuple(
            f"{finding.code}: {finding.says}" for finding in self.findings
        )
