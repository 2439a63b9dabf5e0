"""Canvas' gradebook: CSV for Grades, Import. Canvas finds a student by the SIS ids, then by name. Only final grades: an empty cell may delete one."""

from __future__ import annotations

from collections.abc import Sequence

from scpslab.analysis.csv_text import csv_text
from scpslab_course.grading.formats.base import Facts, Format, book, cell, names_of
from scpslab_course.grading.grade import Grade

# Canvas knows its own columns by these names and this order; every further one is an assignment, which it makes if it has none of that name.
COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
POINTS = "    Points Possible"


def write(grades: Sequence[Grade], facts: Facts) -> str:
    """The table."""
    names, students = book(grades, facts)
    most = {name: grade.most for found in students.values() for name, grade in found.items()}
    rows: list[list[str]] = [[*COLUMNS, *names], [POINTS, "", "", "", "", *(f"{most[name]:g}" for name in names)]]
    for student, found in students.items():
        name = ", ".join(reversed([part for part in names_of(student.name) if part])) or student.id
        rows.append([*map(cell, (name, "", student.id, student.id, "")), *(f"{found[one].score:.4g}" if one in found else "" for one in names)])
    return csv_text(rows)


KIND = Format("CSV for Canvas' gradebook, final grades alone", ".csv", write, of_one=False)
