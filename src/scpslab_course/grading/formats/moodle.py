"""Moodle's gradebook: CSV for Grades, Import, CSV file, where each column is mapped to a field of Moodle. Only final grades: an empty cell may delete one."""

from __future__ import annotations

from collections.abc import Sequence

from scpslab.analysis.csv_text import csv_text
from scpslab_course.grading.formats.base import Facts, Format, book, cell, feedback
from scpslab_course.grading.grade import Grade


def write(grades: Sequence[Grade], facts: Facts) -> str:
    """The table."""
    names, students = book(grades, facts)
    columns = [column for name in names for column in (name, f"{name} (feedback)")]
    rows: list[list[str]] = [["ID number", "Email address", *columns]]
    for student, found in students.items():
        row = [cell(student.id), cell(student.email)]
        for name in names:
            row += [f"{found[name].score:.4g}", cell(feedback(found[name]))] if name in found else ["", ""]
        rows.append(row)
    return csv_text(rows)


KIND = Format("CSV for Moodle's gradebook, final grades alone", ".csv", write, of_one=False)
