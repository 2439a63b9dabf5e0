"""A line for each student with a final grade, for a mail merge: address, name, points, and the comments on all parts."""

from __future__ import annotations

from collections.abc import Sequence

from scpslab.analysis.csv_text import csv_text
from scpslab_course.grading.formats.base import Facts, Format, cell, feedback, finals
from scpslab_course.grading.grade import Grade

COLUMNS = ("email", "name", "student", "assignment", "score", "of", "feedback")


def write(grades: Sequence[Grade], facts: Facts) -> str:
    """The table."""
    rows: list[Sequence[str]] = [COLUMNS]
    for student, grade in finals(grades, facts):
        texts = (student.email, student.name, student.id, grade.assignment)
        rows.append([*map(cell, texts), f"{grade.score:.4g}", f"{grade.most:g}", cell(feedback(grade))])
    return csv_text(rows)


KIND = Format("CSV for a mail merge, final grades alone", ".csv", write, of_one=False)
