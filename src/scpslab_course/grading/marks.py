"""marks.csv: the points that a person gives.

A line for each part that waits; who marks fills in points, and the next command takes them.

A line belongs to the bytes of a submission: who hands in again is marked again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from scpslab.analysis.output import csv_text, no_formula
from scpslab.core.choices import one_of
from scpslab.core.errors import ScenarioError, UsageError
from scpslab.core.names import shown
from scpslab.core.scratch import replace_text
from scpslab_course.course.roster import read_csv
from scpslab_course.grading.grade import Grade, Part, Status

COLUMNS = ("submission", "student", "assignment", "part", "of", "points", "comment")
DIGITS, LARGEST_BYTES = 12, 16 << 20
# The part of a line that releases a held submission, and what stands there as points.
HELD, ACCEPT = "held", "accept"


@dataclass(frozen=True)
class Mark:
    """A line. `points` as they are written."""

    line: int
    row: tuple[str, ...]
    points: str
    comment: str


class Marks:
    """The lines of a file, which is made if it is missing.

    `problems`: what is wrong with lines that could not be used, by their numbers.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.problems = path, dict[int, str]()
        self._lines = {(mark.row[0], mark.row[3]): mark for mark in _read(path)}

    def applied(self, grade: Grade) -> Grade:
        """The grade with the points that a person has given."""
        parts = tuple(self._part(grade, part) for part in grade.parts)
        mark = self._lines.get((_key(grade), HELD))
        accepted = mark is not None and mark.points.casefold() == ACCEPT
        if mark is not None and mark.points and not accepted:
            self.problems[mark.line] = (
                f'found {shown(mark.points)}; expected "{ACCEPT}", or nothing as long as it is held'
            )
        known = {HELD, *(part.label for part in grade.parts)}
        for (key, label), other in self._lines.items():
            if key == _key(grade) and label not in known:
                self.problems[other.line] = f"found the part {shown(label)}; {one_of(label, sorted(known))}"
        return replace(grade, parts=parts, is_accepted=accepted)

    def _part(self, grade: Grade, part: Part) -> Part:
        mark = self._lines.get((_key(grade), part.label))
        if mark is None or not mark.points:
            return part
        try:
            points = float(mark.points.replace(",", "."))
        except ValueError:
            points = math.nan
        if not 0 <= points <= part.points:
            self.problems[mark.line] = (
                f"found {shown(mark.points)} points for {part.label}; expected 0 to {part.points:g}"
            )
            return part
        return replace(
            part, earned=points, comment=mark.comment or ("marked by a person" if part.earned is None else part.comment)
        )

    def write(self, grades: Sequence[Grade]) -> int:
        """Adds a line for everything that waits and has none; returns how many parts of these grades wait.

        Lines that are there stay.
        """
        waiting = 0
        added = []
        for grade in grades:
            labels = [(part.label, f"{part.points:g}") for part in grade.parts if part.earned is None]
            if grade.status is Status.HELD:
                labels.insert(0, (HELD, ""))
            waiting += len(labels)
            rows = [
                (_key(grade), grade.submitter or grade.student, grade.assignment, label, of, "", "")
                for label, of in labels
            ]
            added += [row for row in rows if (row[0], row[3]) not in self._lines]
        if added or not self.path.exists():
            kept = [mark.row for mark in self._lines.values()]
            replace_text(self.path, csv_text([COLUMNS, *kept, *(map(no_formula, row) for row in added)]), private=True)
        return waiting


def _key(grade: Grade) -> str:
    # No spreadsheet takes it for a number.
    return f"sha256-{grade.sha256[:DIGITS]}"


def _read(path: Path) -> list[Mark]:
    if not path.exists():
        if not path.parent.is_dir():
            raise UsageError(
                f"--marks {path}: found no folder for it; expected the file of marks, or the place for a new one. "
                "Name another."
            )
        return []
    head, rows = read_csv(path, "CSV in UTF-8 as this command writes it", LARGEST_BYTES)
    if head != COLUMNS:
        wanted = ",".join(COLUMNS)
        raise ScenarioError(f"{path}:1: found other columns; expected {wanted}. Correct the line, or name a new file.")
    found: dict[tuple[str, str], Mark] = {}
    for number, fields in rows:
        row = tuple(fields.values())
        mark = Mark(number, row, row[5].strip(), row[6].strip())
        if other := found.get((row[0], row[3])):
            again = f"{shown(row[3])} of {shown(row[1])} again, as in line {other.line}"
            raise ScenarioError(f"{path}:{number}: found {again}; expected it once. Remove one.")
        found[row[0], row[3]] = mark
    return list(found.values())
