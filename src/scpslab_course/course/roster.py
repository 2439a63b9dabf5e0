"""CSV files of instructors, read strictly: students of a course, and who handed in which file. Errors name lines."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scpslab.core.choices import one_of
from scpslab.core.errors import ScenarioError
from scpslab.core.names import EXPECTED, LONGEST, is_name, shown
from scpslab.documents.yaml_lines import content_of

COLUMNS = ("student", "name", "email", "group")
LARGEST_BYTES, MOST_STUDENTS, LONGEST_FIELD = 1 << 20, 5000, 200
Rows = list[tuple[int, dict[str, str]]]


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


def read_csv(path: Path, expected: str, most: int = LARGEST_BYTES) -> tuple[tuple[str, ...], Rows]:
    """The columns of a CSV file, and its lines with their numbers. A head without commas has semicolons.

    Raises:
        ScenarioError: no ordinary file, more than `most` bytes, no text, no CSV, or lines of other length than the
            head.
    """
    try:
        content = content_of(path, most)
    except OSError as error:
        raise ScenarioError(f"{path}: found {error.strerror}; expected {expected}. Correct the path.") from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ScenarioError(
            f'{path}:{line}: found bytes that are not UTF-8; expected text. Save the file as "CSV UTF-8".'
        ) from error
    if "\0" in text:
        raise ScenarioError(
            f"{path}:{text[: text.index(chr(0))].count(chr(10)) + 1}: found a NUL; expected text. "
            "Save the file as CSV again."
        )
    first = text.split("\n", 1)[0]
    delimiter = ";" if ";" in first and "," not in first else ","
    # Without newline="" a field could not have a line of its own; strict refuses quotes that never end.
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        rows = [(lines.line_num, row) for row in lines if any(field.strip() for field in row)]
    except csv.Error as error:
        said = f"{path}:{lines.line_num}: found {error}; expected a line of CSV. Correct the quotes."
        raise ScenarioError(said) from error
    if not rows:
        raise ScenarioError(f"{path}: found no line; expected {expected}. Add it.")
    head = tuple(name.strip().casefold() for name in rows[0][1])
    as_head = f"expected {len(head)}, as in the head. Put a field with {delimiter!r} in quotes."
    unlike = ((number, len(row)) for number, row in rows[1:] if len(row) != len(head))
    if wrong := [f"{path}:{number}: found {count} fields; {as_head}" for number, count in unlike]:
        raise ScenarioError("\n".join(wrong))
    return head, [(number, dict(zip(head, row, strict=True))) for number, row in rows[1:]]


def read_roster(path: Path) -> tuple[Student, ...]:
    """The students of a file with the columns student (an id), and if you like name, email and group.

    Raises:
        ScenarioError: all errors of the file, one line each.
    """
    head, rows = read_csv(path, f"a roster, a CSV file with a head such as {','.join(COLUMNS)}")
    if wrong := list(_wrong_columns(str(path), head)):
        raise ScenarioError("\n".join(wrong))
    if not rows or len(rows) > MOST_STUDENTS:
        raise ScenarioError(f"{path}: found {len(rows)} students; expected 1 to {MOST_STUDENTS}. Add a line for each.")
    students = []
    for number, row in rows:
        fields = (unicodedata.normalize("NFC", row.get(name, "").strip()) for name in COLUMNS)
        students.append((number, Student(*fields)))
    if wrong := list(_wrong_students(str(path), students)):
        raise ScenarioError("\n".join(wrong))
    return tuple(student for _, student in students)


def parties(students: Sequence[Student]) -> tuple[Party, ...]:
    """Groups and single students, in the order of the roster."""
    found: dict[str, list[Student]] = {}
    for student in students:
        found.setdefault(f"group/{student.group}" if student.group else student.id, []).append(student)
    return tuple(Party(name, tuple(members)) for name, members in found.items())


def read_submitters(path: Path, submissions: Sequence[Path]) -> Mapping[Path, str]:
    """The students of a CSV file with the columns file and student; a file stands there by its name, or by its path.

    Raises:
        ScenarioError: all errors of the file, one line each.
    """
    head, rows = read_csv(path, "CSV with the columns file, student")
    if not rows or not {"file", "student"} <= set(head):
        raise ScenarioError(f"{path}:1: found no columns file, student and no line below; expected them. Add them.")
    wrong = []
    by_name: dict[str, str] = {}
    for number, row in rows:
        name, student = row["file"].strip(), row["student"].strip()
        if not name or not is_name(student):
            wrong.append(
                f"{path}:{number}: found {shown(name)}, {shown(student)}; expected a file and a student's id. "
                "Correct the line."
            )
        elif by_name.setdefault(name, student) != student:
            wrong.append(
                f"{path}:{number}: found {shown(name)} a second time with another student; expected it once. "
                "Remove a line."
            )
    if wrong:
        raise ScenarioError("\n".join(wrong))
    found = {one: by_name.get(str(one), by_name.get(one.name)) for one in submissions}
    return {one: student for one, student in found.items() if student is not None}


def _wrong_columns(where: str, columns: Sequence[str]) -> Iterator[str]:
    for name in columns:
        if name not in COLUMNS:
            yield f"{where}:1: found the column {shown(name)}; {one_of(name, COLUMNS)}"
        elif columns.count(name) > 1:
            yield f'{where}:1: found the column "{name}" twice; expected it once. Remove one.'
    if "student" not in columns:
        yield f'{where}:1: found no column "student"; expected it, with an id for each student. Add it.'


def _wrong_students(where: str, students: Sequence[tuple[int, Student]]) -> Iterator[str]:
    seen: dict[str, int] = {}
    for number, student in students:
        for what, value in (("student", student.id), ("group", student.group)):
            if not is_name(value, LONGEST) and (value or what == "student"):
                yield (
                    f"{where}:{number}: {what}: found {shown(value)}; expected {EXPECTED}, at most {LONGEST}. "
                    "It becomes a folder's name: choose another."
                )
        for what, value in (("name", student.name), ("email", student.email)):
            if len(value) > LONGEST_FIELD or not value.isprintable():
                yield (
                    f"{where}:{number}: {what}: found {shown(value)}; expected one line of at most {LONGEST_FIELD} "
                    "characters. Correct it."
                )
        # Folders whose names differ in case alone are one folder on many computers.
        if (key := student.id.casefold()) in seen:
            yield (
                f"{where}:{number}: student: found {shown(student.id)}, as in line {seen[key]}; "
                "expected each student once. Remove a line, or correct the id."
            )
        seen.setdefault(key, number)
    groups: dict[str, str] = {}
    for number, student in students:
        if groups.setdefault(student.group.casefold(), student.group) != student.group:
            other = groups[student.group.casefold()]
            yield (
                f"{where}:{number}: group: found {shown(student.group)} beside {shown(other)}; "
                "expected one spelling. Correct one."
            )
