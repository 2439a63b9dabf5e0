"""nbgrader's CSV: a line for each student with a grade. Who has none is left out, so that the gradebook keeps what it has; the command says who."""

from __future__ import annotations

from collections.abc import Sequence

from scpslab.course.roster import Student
from scpslab.grading.formats.base import Facts, Format, cell
from scpslab.grading.grade import Grade, Status
from scpslab.results.csv_text import csv_text

COLUMNS = (
    *("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"),
    *("raw_score", "late_submission_penalty", "score", "max_score"),
)


def write(grades: Sequence[Grade], facts: Facts) -> str:
    """The table."""
    rows: list[Sequence[object]] = [COLUMNS]
    for grade in grades:
        if grade.status is not Status.GRADED:
            continue
        for member in grade.members:
            student = facts.students.get(member, Student(member))
            first, last = _names(student.name)
            score = f"{grade.score:.4g}"
            texts = (grade.assignment, "", facts.at, member, last, first, student.email)
            rows.append([*map(cell, texts), score, "0", score, f"{grade.most:g}"])
    return csv_text(rows)


def _names(name: str) -> tuple[str, str]:
    """First and last name of `Last, First` or `First Last`."""
    last, comma, first = name.partition(",")
    if not comma:
        first, _, last = name.rpartition(" ")
    return first.strip(), last.strip()


KIND = Format("nbgrader's CSV", ".csv", write, of_one=False)
