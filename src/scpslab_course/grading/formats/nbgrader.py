"""nbgrader's CSV: a line for each student with a grade. Who has none is left out, so that the gradebook keeps what it has; the command says who."""

from __future__ import annotations

from collections.abc import Sequence

from scpslab.analysis.csv_text import csv_text
from scpslab_course.course.roster import Student
from scpslab_course.grading.formats.base import Facts, Format, cell, names_of
from scpslab_course.grading.grade import Grade, Status

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
        for member in grade.recipients:
            student = facts.students.get(member, Student(member))
            first, last = names_of(student.name)
            score = f"{grade.score:.4g}"
            texts = (grade.assignment, "", facts.at, member, last, first, student.email)
            rows.append([*map(cell, texts), score, "0", score, f"{grade.most:g}"])
    return csv_text(rows)


KIND = Format("nbgrader's CSV", ".csv", write, of_one=False)
