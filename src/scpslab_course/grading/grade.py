"""What the grader says of a submission, as values: every format and page is made from these, and nothing else (decision
0704); and marks.csv, the points that a person gives.

marks.csv has a line for each part that waits; who marks fills in points, and the next command takes them. A line
belongs to the bytes of a submission: who hands in again is marked again.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from scpslab.analysis.output import csv_text, no_formula
from scpslab.core.choices import one_of
from scpslab.core.errors import ScenarioError, UsageError
from scpslab.core.names import file_label, file_name, shown
from scpslab.core.scratch import replace_text
from scpslab_course.course.answers import Expected
from scpslab_course.course.folder import read_csv
from scpslab_course.course.model import Item
from scpslab_course.course.workspace import Line

COLUMNS = ("submission", "student", "assignment", "part", "of", "points", "comment")
LARGEST_BYTES = 16 << 20
# The part of a line that releases a held submission, and what stands there as points.
HELD, ACCEPT = "held", "accept"


class Status(StrEnum):
    """graded: the score counts. held: a person decides, because something was found. ungraded: there is no score, and
    `reason` says why.
    """

    GRADED = "graded"
    HELD = "held"
    UNGRADED = "ungraded"


class Code(StrEnum):
    """The names of what the grader finds. docs/grading.md explains each."""

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
    LATE_SUBMISSION = "late-submission"
    PUBLISHED_SOLUTION = "published-solution"
    COPIED_NUMBERS = "copied-numbers"
    EQUAL_TEXTS = "equal-texts"
    EQUAL_LOGS = "equal-logs"


# These take nobody's points by themselves: an interrupted run has the right bytes,
# a late prediction costs its own points and says so, late days are the instructor's rule, and equality may be chance.
LATE = {Code.LATE_PREDICTION, Code.LATE_SUBMISSION}
REMARKS = frozenset({*LATE, Code.INTERRUPTED_RUN, Code.COPIED_NUMBERS, Code.EQUAL_TEXTS, Code.EQUAL_LOGS})


@dataclass(frozen=True)
class Concern:
    """Something that a person should see: its name, and a sentence with what was found and what was expected.

    `is_of_class`: it names other students, so those who hand in never read it.
    """

    code: Code
    says: str
    is_of_class: bool = False

    @property
    def holds(self) -> bool:
        """Whether the grade waits for a person."""
        return self.code not in REMARKS


@dataclass(frozen=True)
class Graded:
    """A prediction, answer, deliverable or write-up. `earned` is None where a person gives the points, by `rubric`.

    `given` is what the student wrote, `right` the right value with its unit, for who marks.
    `is_inside` is whether an interval of a prediction holds the true number; None for everything else. `numbers`: what
    a hidden trial has measured, on a path that is the same for everybody; None for everything else.
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
    numbers: Mapping[str, float] | None = None

    @property
    def is_right(self) -> bool:
        """All points; or an interval that holds the number: its width always costs a little."""
        return self.earned is not None and (self.earned >= self.points or self.is_inside is True)

    @property
    def label(self) -> str:
        """Its kind and name, which are one of a kind in a submission."""
        return f"{self.kind} {self.name}"


@dataclass(frozen=True)
class Grade:
    """The grade of one submission.

    `waiting` counts the points that a person has not given yet. `digests` and `foreign`: see classwide.wrote.
    `numbers`: what is right for its variant, by which copies of others are found.

    `submitter` handed it in, as the platform says; `is_accepted`: a person has looked at what was found. `pseudonym`:
    on a leaderboard; "" without hidden trials, or without the course's secret. `parameters`: the variant's.
    `packets`: by scenario, the file beside the pages for who marks with the cells that were run again, as the studio
    shows them.
    """

    path: Path
    sha256: str = ""
    assignment: str = ""
    student: str = ""
    members: tuple[str, ...] = ()
    reason: str = ""
    findings: tuple[Concern, ...] = ()
    parts: tuple[Graded, ...] = ()
    cells: tuple[str, ...] = ()
    seconds: float = 0.0
    digests: Mapping[str, str] = field(default_factory=dict)
    foreign: tuple[str, ...] = ()
    lines: tuple[Line, ...] = ()
    expected: Expected | None = None
    numbers: Mapping[str, float] = field(default_factory=dict)
    submitter: str = ""
    is_accepted: bool = False
    pseudonym: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    packets: Mapping[str, str] = field(default_factory=dict)

    @property
    def status(self) -> Status:
        """Whether the score counts."""
        if self.reason:
            return Status.UNGRADED
        return Status.HELD if self.holding and not self.is_accepted else Status.GRADED

    @property
    def holding(self) -> set[str]:
        """The names of what was found and holds the grade, whether or not a person has accepted it."""
        return {finding.code for finding in self.findings if finding.holds}

    @property
    def is_final(self) -> bool:
        """Whether nothing of it waits for a person."""
        return self.status is Status.GRADED and not self.waiting

    @property
    def recipients(self) -> tuple[str, ...]:
        """The students whose grade it is: the members of the variant, or who handed in somebody else's."""
        return (self.submitter,) if self.submitter and self.submitter not in self.members else self.members

    @property
    def whose(self) -> str:
        """Whose grade it is, in one name: the student or group of the variant, or who handed in somebody else's."""
        return self.student if self.recipients == self.members else self.submitter

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
    def texts(self) -> dict[str, str]:
        """The texts and programs that the student wrote, by the names of questions and files.

        Tables whose lines are marked are none: right ones are alike.
        """
        tables = {part.name for part in self.parts if part.kind == "lines"}
        parts = (part for part in self.parts if part.rubric or part.kind in ("deliverable", "write-up"))
        return {part.name: part.given for part in parts if part.given and part.name not in tables}

    @property
    def urgency(self) -> tuple[bool, int, int]:
        """How soon a person should look.

        Of two with equal texts, the one with more findings is rather the copy than the original.
        """
        copied = sum(finding.code is Code.COPIED_NUMBERS for finding in self.findings)
        return self.status is not Status.GRADED, copied, len(self.said)

    @property
    def said(self) -> tuple[str, ...]:
        """Why there is no score, or what was found, one sentence each."""
        return tuple(filter(None, (self.reason, *(f"{one.code}: {one.says}" for one in self.findings))))


def file_names(grades: Sequence[Grade]) -> list[str]:
    """A name for each submission: its number makes it unique, whatever the student is called."""
    whose = (one.submitter or one.student or one.path.name for one in grades)
    return [file_name(f"{number:03}", file_label(name)) for number, name in enumerate(whose, start=1)]


@dataclass(frozen=True)
class Mark:
    """A line: its number and its fields, in the order of COLUMNS."""

    line: int
    row: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str]:
        """The submission and the part that it is about."""
        return self.row[0], self.row[3]

    @property
    def points(self) -> str:
        """The points as they are written."""
        return self.row[5].strip()

    def lacks(self, grade: Grade) -> str:
        """What holds a grade and is not named in its line `held`: it was found since."""
        return ", ".join(sorted(grade.holding.difference(self.row[4].split())))


class Marks:
    """The lines of a file, which is made if it is missing.

    `problems`: what is wrong with lines that could not be used, by their numbers.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.problems = path, dict[int, str]()
        self._lines = _read(path)

    def applied(self, grade: Grade) -> Grade:
        """The grade with the points that a person has given."""
        mine = _of(grade, self._lines)
        mark = mine.get(HELD)
        since = mark.lacks(grade) if mark is not None else ""
        accepted = mark is not None and not since and mark.points.casefold() == ACCEPT
        if mark is not None and mark.points and not accepted:
            found = f"found {shown(mark.points)}" + (f", and {since} since then" if since else "")
            self.problems[mark.line] = f'{found}; expected "{ACCEPT}", or nothing as long as it is held'
        known = {HELD, *(part.label for part in grade.parts)}
        for label, other in mine.items():
            if label not in known:
                self.problems[other.line] = f"found the part {shown(label)}; {one_of(label, sorted(known))}"
        parts = tuple(self._part(part, mine.get(part.label)) for part in grade.parts)
        return replace(grade, parts=parts, is_accepted=accepted)

    def _part(self, part: Graded, mark: Mark | None) -> Graded:
        if mark is None or not mark.points:
            return part
        try:
            points = float(mark.points.replace(",", "."))
        except ValueError:
            points = math.nan
        if not 0 <= points <= part.points or points != round(points, 2):
            expected = f"expected 0 to {part.points:g}, with at most two decimals"
            self.problems[mark.line] = f"found {shown(mark.points)} points for {part.label}; {expected}"
            return part
        marked = "marked by a person" if part.earned is None else part.comment
        return replace(part, earned=points, comment=mark.row[6].strip() or marked)

    def rows(self) -> list[tuple[str, ...]]:
        """The lines of the file as it is now, in its order."""
        return [mark.row for mark in _read(self.path).values()]

    def write(self, grades: Sequence[Grade]) -> int:
        """Adds a line for everything that waits and has none; returns how many parts of these grades wait.

        Lines that are there stay, as they are now: a class is graded for minutes, while somebody marks. Those of the
        beginning count where there is no file any more.
        """
        lines = _read(self.path) or self._lines
        # The line of a grade that is held for more than it names begins anew.
        for grade in grades:
            if (mark := _of(grade, lines).get(HELD)) is not None and mark.lacks(grade):
                del lines[mark.key]
        waiting = [(grade, label, of) for grade in grades for label, of in _waiting(grade)]
        # One line for the same bytes, whoever else hands them in.
        added: dict[tuple[str, str], tuple[str, ...]] = {}
        for grade, label, of in waiting:
            if label not in _of(grade, lines):
                row = (_key(grade, label), grade.submitter or grade.student, grade.assignment, label, of, "", "")
                added.setdefault((row[0], label), row)
        if added or not self.path.exists():
            kept = [mark.row for mark in lines.values()]
            text = csv_text([COLUMNS, *kept, *(map(no_formula, row) for row in added.values())])
            replace_text(self.path, text, private=True)
        return len({(_key(grade, label), label) for grade, label, _ in waiting})


def _waiting(grade: Grade) -> Iterator[tuple[str, str]]:
    """What a person decides about a submission, each with the most points for it, or with what holds it."""
    if grade.status is Status.HELD:
        yield HELD, " ".join(sorted(grade.holding))
    yield from ((part.label, f"{part.points:g}") for part in grade.parts if part.earned is None)


def _key(grade: Grade, label: str = "") -> str:
    # Who is accepted is one person: others may hand in the same bytes. No spreadsheet takes it for a number.
    return f"sha256-{grade.sha256}" + (f"-{grade.submitter}" if label == HELD and grade.whose != grade.student else "")


def _of(grade: Grade, lines: Mapping[tuple[str, str], Mark]) -> dict[str, Mark]:
    """The lines of a submission by their parts."""
    key, own = _key(grade), _key(grade, HELD)
    found, mine = ({mark.row[3]: mark for mark in lines.values() if mark.row[0] == one} for one in (key, own))
    if own != key:
        found.pop(HELD, None)
    return found | mine


def _read(path: Path) -> dict[tuple[str, str], Mark]:
    if not path.exists():
        if not path.parent.is_dir():
            expected = "expected the file of marks, or the place for a new one. Name another."
            raise UsageError(f"--marks {path}: found no folder for it; {expected}")
        return {}
    head, rows = read_csv(path, "CSV in UTF-8 as this command writes it", LARGEST_BYTES)
    if head != COLUMNS:
        wanted = ",".join(COLUMNS)
        raise ScenarioError(f"{path}:1: found other columns; expected {wanted}. Correct the line, or name a new file.")
    marks: dict[tuple[str, str], Mark] = {}
    for number, fields in rows:
        mark = Mark(number, tuple(fields.values()))
        if (other := marks.setdefault(mark.key, mark)) is not mark:
            again = f"{shown(mark.row[3])} of {shown(mark.row[1])} again, as in line {other.line}"
            raise ScenarioError(f"{path}:{number}: found {again}; expected it once. Remove one.")
    return marks
