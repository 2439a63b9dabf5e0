"""Rosters: CSV files of students. Read strictly; all errors at once, each with its line."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scpslab.core.choices import one_of
from scpslab.core.errors import ScenarioError
from scpslab.core.names import EXPECTED, LONGEST, is_name, shown

COLUMNS = ("student", "name", "email", "group")
REQUIRED = "student"
LARGEST_BYTES, MOST_STUDENTS, LONGEST_FIELD = 1 << 20, 5000, 200


@dataclass(frozen=True)
class Student:
    """A line of a roster; `group` is "" for one who works alone."""

    id: str
    name: str = ""
    email: str = ""
    group: str = ""


@dataclass(frozen=True)
class Party:
    """Who works on one variant: `name` is what it is drawn under."""

    name: str
    members: tuple[Student, ...]


def read_roster(path: Path) -> tuple[Student, ...]:
    """The students of a file with the columns student (an id), and if you like name, email and group; separated with commas or semicolons.

    Raises:
        ScenarioError: all errors of the file, one line each.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise ScenarioError(f"{path}: found {error.strerror}; expected a roster, a CSV file with the column student. Correct the path.") from error
    if len(content) > LARGEST_BYTES:
        raise ScenarioError(f"{path}: found more than {LARGEST_BYTES} bytes; expected a roster, a CSV file with the column student. Correct the path.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ScenarioError(f'{path}:{line}: found bytes that are not UTF-8; expected text. Save the file as "CSV UTF-8".') from error
    if "\0" in text:
        raise ScenarioError(f"{path}:{text[: text.index(chr(0))].count(chr(10)) + 1}: found a NUL; expected text. Save the file as CSV again.")
    students, wrong = _students(str(path), unicodedata.normalize("NFC", text))
    if wrong:
        raise ScenarioError("\n".join(wrong))
    return tuple(students)


def parties(students: Sequence[Student]) -> tuple[Party, ...]:
    """Groups and single students, in the order of the roster."""
    found: dict[str, list[Student]] = {}
    for student in students:
        found.setdefault(f"group/{student.group}" if student.group else student.id, []).append(student)
    return tuple(Party(name, tuple(members)) for name, members in found.items())


def _students(where: str, text: str) -> tuple[list[Student], list[str]]:
    head = text.split("\n", 1)[0]
    delimiter = ";" if ";" in head and "," not in head else ","
    # Without newline="" a field could not have a line of its own; strict refuses quotes that never end.
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    wrong: list[str] = []
    rows: list[tuple[int, list[str]]] = []
    try:
        rows = [(lines.line_num, [field.strip() for field in row]) for row in lines if any(field.strip() for field in row)]
    except csv.Error as error:
        wrong.append(f"{where}:{lines.line_num}: found {error}; expected a line of CSV. Correct the quotes.")
    if not rows:
        return [], wrong or [f"{where}: found no line; expected a head such as student,name,email,group. Add it."]
    columns, rows = [name.casefold() for name in rows[0][1]], rows[1:]
    wrong += _wrong_columns(where, columns)
    if wrong:
        return [], wrong
    if not rows or len(rows) > MOST_STUDENTS:
        return [], [f"{where}: found {len(rows)} students; expected 1 to {MOST_STUDENTS}. Add a line for each."]
    students: list[tuple[int, Student]] = []
    for number, row in rows:
        if len(row) != len(columns):
            wrong.append(f"{where}:{number}: found {len(row)} fields; expected {len(columns)}, as in the head. Put a field with {delimiter!r} in quotes.")
            continue
        fields = dict(zip(columns, row, strict=True))
        students.append((number, Student(fields["student"], *(fields.get(name, "") for name in COLUMNS[1:]))))
    return [student for _, student in students], [*wrong, *_wrong_students(where, students)]


def _wrong_columns(where: str, columns: Sequence[str]) -> Iterator[str]:
    for name in columns:
        if name not in COLUMNS:
            yield f"{where}:1: found the column {shown(name)}; {one_of(name, COLUMNS)}"
        elif columns.count(name) > 1:
            yield f'{where}:1: found the column "{name}" twice; expected it once. Remove one.'
    if REQUIRED not in columns:
        yield f'{where}:1: found no column "{REQUIRED}"; expected it, with an id for each student. Add it.'


def _wrong_students(where: str, students: Sequence[tuple[int, Student]]) -> Iterator[str]:
    seen: dict[str, int] = {}
    for number, student in students:
        for what, value in (("student", student.id), ("group", student.group)):
            if not is_name(value, LONGEST) and (value or what == "student"):
                yield f"{where}:{number}: {what}: found {shown(value)}; expected {EXPECTED}, at most {LONGEST}. It becomes a folder's name: choose another."
        for what, value in (("name", student.name), ("email", student.email)):
            if len(value) > LONGEST_FIELD or not value.isprintable():
                yield f"{where}:{number}: {what}: found {shown(value)}; expected one line of at most {LONGEST_FIELD} characters. Correct it."
        # Folders whose names differ in case alone are one folder on many computers.
        if (key := student.id.casefold()) in seen:
            yield f"{where}:{number}: student: found {shown(student.id)}, as in line {seen[key]}; expected each student once. Remove a line, or correct the id."
        seen.setdefault(key, number)
    groups: dict[str, str] = {}
    for number, student in students:
        if groups.setdefault(student.group.casefold(), student.group) != student.group:
            other = groups[student.group.casefold()]
            yield f"{where}:{number}: group: found {shown(student.group)} beside {shown(other)}; expected one spelling. Correct one."
