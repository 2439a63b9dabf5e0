"""The forms in which grades leave the laboratory. A format is a function here, and its line in FORMATS.

Without a grade no form has a score: platforms would take one for a 0, and an empty cell of a grade book may delete one.
A student's words are plain text on one line, so that no terminal, browser, platform or spreadsheet obeys them.
"""

import json
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from scpslab.analysis.output import csv_text, no_formula
from scpslab_course.course.folder import Student
from scpslab_course.grading.grade import Grade, Status

LONGEST = 2000
# A spreadsheet's cell holds 32,767.
LONGEST_CELL = 30_000
UNSEEN = "a path that you have not seen: numbers are not shown"
# Canvas knows its own columns by these names and this order; every further one is an assignment.
CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
CSV = ("student", "name", "email", "assignment", "status", "score", "of", "waiting", "submission", "feedback")
JSON = ("kind", "name", "earned", "points", "is_right")
TABLE = ("status", "score", "of", "for a person", "student", "submission")


@dataclass(frozen=True)
class Facts:
    """What a format needs besides grades: the course's title and term, students by id, and the students and assignments
    for which variants were issued.
    """

    course: str
    term: str
    students: Mapping[str, Student] = field(default_factory=dict)
    issued: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Format:
    """A form of grades. `of_one`: of a platform that grades one submission at a time; other forms take a class."""

    says: str
    write: Callable[[Sequence[Grade], Facts], str]
    of_one: bool = False


def line(text: str, most: int = LONGEST) -> str:
    """A student's text on one line, without what a terminal, browser, spreadsheet or platform obeys."""
    plain = "".join(" " if unicodedata.category(letter)[0] in "CZ" else letter for letter in text[: most + 1])
    words = " ".join(plain.split())
    return words if len(words) <= most else f"{words[: most - 1]}…"


def comment(grade: Grade) -> str:
    """The lines that go with a whole grade: why there is none, what was found, and what a person still decides.

    Students read them, so nobody else is named.
    """
    own = tuple(finding for finding in grade.findings if not finding.is_of_class)
    lines = [line(said) for said in replace(grade, findings=own).said]
    if grade.parts:
        held = " This score is held: a person decides." if grade.status is Status.HELD else ""
        waits = f"; a person still decides about {grade.waiting:g} of them" if grade.waiting else ""
        lines.append(f"{_points(grade.score)} of {grade.most:g} points{waits}.{held}")
    return "\n".join([*lines, *_on_leaderboard(grade)])


def not_handed_in(grades: Sequence[Grade], facts: Facts) -> dict[str, list[str]]:
    """The students without a file, by assignment: of those assignments for which others have handed in."""
    given = {(one, grade.assignment) for grade in grades for one in grade.recipients}
    # Whose file cannot be read has handed in something.
    unread = {grade.submitter for grade in grades if not grade.assignment}
    found: dict[str, list[str]] = {grade.assignment: [] for grade in grades if grade.assignment}
    for student, name in facts.issued:
        if name in found and (student, name) not in given and student not in unread:
            found[name].append(student)
    return {name: students for name, students in found.items() if students}


def table(grades: Sequence[Grade], facts: Facts) -> str:
    """Plain text: a line for each submission, and below it what was found."""
    rows = [TABLE, *map(_row, grades)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row, said in zip(rows, [(), *(grade.said for grade in grades)], strict=True):
        lines.append("  ".join(map(str.ljust, row, widths)).rstrip())
        lines += [f"    {line(text)}" for text in said]
    counts = [f"{sum(grade.status is status for grade in grades)} {status}" for status in Status]
    missing = [line(f"not handed in, {name}: {', '.join(who)}") for name, who in not_handed_in(grades, facts).items()]
    return "\n".join([*lines, "", ", ".join(counts), *missing, ""])


def csv_(grades: Sequence[Grade], facts: Facts) -> str:
    """A line for each student of a submission. There is no score without a grade, nor for who has handed in several
    files.
    """
    rows: dict[tuple[str, str], Sequence[str]] = {}
    doubtful = several(grades)
    for grade in grades:
        points = map(_points, (grade.most, grade.waiting)) if grade.parts else ("", "")
        about = (*points, _cell(str(grade.path)))
        for one in grade.recipients or ("",):
            student = facts.students.get(one, Student(one))
            is_graded = grade.status is Status.GRADED and (one, grade.assignment) not in doubtful
            score, said = (_points(grade.score), _feedback(grade)) if is_graded else ("", _cell(comment(grade)))
            texts = (student.id, student.name, student.email, grade.assignment, grade.status)
            # Members of a group may hand in one file twice.
            rows.setdefault((one, grade.sha256 or str(grade.path)), (*map(_cell, texts), score, *about, said))
    return csv_text([CSV, *rows.values()])


def json_(grades: Sequence[Grade], _: Facts) -> str:
    """Each grade with its parts, as a student may see it. Without a grade it has no `score`."""
    found = []
    for grade in map(unseen, grades):
        one: dict[str, object] = {"submission": line(str(grade.path)), "sha256": grade.sha256, "status": grade.status}
        one |= {"assignment": grade.assignment, "students": grade.recipients, "of": grade.most}
        one |= {"waiting": grade.waiting, "findings": _codes(grade), "comment": comment(grade)}
        if grade.status is Status.GRADED:
            parts = [(part, {name: getattr(part, name) for name in JSON}) for part in grade.parts]
            texts = ("question", "given", "comment")
            plain = [{**fields, **{name: line(getattr(part, name)) for name in texts}} for part, fields in parts]
            one |= {"score": round(grade.score, 2), "parts": plain}
        found.append(one)
    return _json(found)


def gradescope(grades: Sequence[Grade], _: Facts) -> str:
    """Gradescope's results.json: texts are declared as plain; without `score` the autograder is said to have failed.

    No test is hidden: one hidden test hides the total. Points that a person gives are given there, by the rubric.
    """
    grade = _only(grades)
    extra = {"status": grade.status, "sha256": grade.sha256, "findings": _codes(grade), "cells": list(grade.cells)}
    found = {"output": comment(grade), "extra_data": extra, "execution_time": round(grade.seconds)}
    found |= dict.fromkeys(("output_format", "test_output_format", "test_name_format"), "text")
    found |= {"visibility": "visible", "stdout_visibility": "hidden"}
    if grade.status is Status.GRADED:
        found["score"] = round(grade.score, 4)
        found["tests"] = [
            {
                "name": line(part.label, 200),
                "number": f"{number}",
                "score": round(part.earned, 4),
                "max_score": part.points,
                "status": "passed" if part.is_right else "failed",
                "output": f"{line(part.question)}\nfound: {line(part.given) or 'nothing'}\n{line(part.comment)}",
                "visibility": "visible",
            }
            for number, part in enumerate(grade.parts, start=1)
            if part.earned is not None
        ]
    return _json(found)


def moodle(grades: Sequence[Grade], facts: Facts) -> str:
    """CSV for Moodle's gradebook (Grades, Import, CSV file), where each column is mapped to a field."""
    names, students = _book(grades, facts)
    rows = [["ID number", "Email address", *(column for name in names for column in (name, f"{name} (feedback)"))]]
    for student, found in students.items():
        cells = ([_points(found[name].score), _feedback(found[name])] if name in found else ["", ""] for name in names)
        rows.append([_cell(student.id), _cell(student.email), *(cell for pair in cells for cell in pair)])
    return csv_text(rows)


def canvas(grades: Sequence[Grade], facts: Facts) -> str:
    """CSV for Canvas' gradebook (Grades, Import), which finds a student by the SIS ids, then by name."""
    names, students = _book(grades, facts)
    most = {name: grade.most for found in students.values() for name, grade in found.items()}
    rows = [[*CANVAS, *names], ["    Points Possible", "", "", "", "", *(f"{most[name]:g}" for name in names)]]
    for student, found in students.items():
        name = ", ".join(part for part in reversed(_names_of(student.name)) if part) or student.id
        scores = (_points(found[one].score) if one in found else "" for one in names)
        rows.append([*map(_cell, (name, "", student.id, student.id, "")), *scores])
    return csv_text(rows)


FORMATS = {
    "table": Format("a line for each submission, and what was found", table),
    "csv": Format("a line for each student", csv_),
    "json": Format("all parts of each grade", json_),
    "gradescope": Format("Gradescope's results.json", gradescope, of_one=True),
    "moodle": Format("CSV for Moodle's gradebook, final grades alone", moodle),
    "canvas": Format("CSV for Canvas' gradebook, final grades alone", canvas),
}


def _row(grade: Grade) -> tuple[str, ...]:
    points = (grade.score, grade.most, grade.waiting)
    numbers = [f"{number:g}" if grade.parts else "-" for number in points]
    return grade.status, *numbers, line(grade.submitter or grade.student or "-", 60), line(str(grade.path), 200)


def _only(grades: Sequence[Grade]) -> Grade:
    """The one grade of a platform that shows it at once."""
    (grade,) = grades
    return unseen(grade)


def unseen(grade: Grade) -> Grade:
    """Without what hidden trials have measured: otherwise every upload would measure their paths. A program may put its
    numbers into an error, too.
    """
    parts = (part if part.numbers is None else replace(part, comment=UNSEEN) for part in grade.parts)
    return replace(grade, parts=tuple(parts))


def _codes(grade: Grade) -> list[str]:
    return [finding.code for finding in grade.findings]


def _json(found: object) -> str:
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _points(points: float) -> str:
    """Points to the hundredth, however many there are: four digits would cut those of a hundred points off."""
    return f"{round(points, 2):.10g}"


def several(grades: Iterable[Grade]) -> dict[tuple[str, str], list[Path]]:
    """The files of each student and assignment that has several different ones: a person knows which one counts."""
    found: dict[tuple[str, str], dict[str, Path]] = defaultdict(dict)
    for grade in grades:
        for student in grade.recipients:
            found[student, grade.assignment].setdefault(grade.sha256, grade.path)
    return {whose: list(paths.values()) for whose, paths in found.items() if len(paths) > 1}


def _book(grades: Sequence[Grade], facts: Facts) -> tuple[list[str], dict[Student, dict[str, Grade]]]:
    """The assignments of these grades, and the final grades by student, for books with a line for each of them."""
    students: dict[Student, dict[str, Grade]] = {}
    doubtful = several(grades)
    for grade in (one for one in grades if one.is_final):
        for one in (one for one in grade.recipients if (one, grade.assignment) not in doubtful):
            students.setdefault(facts.students.get(one, Student(one)), {}).setdefault(grade.assignment, grade)
    return list(dict.fromkeys(name for found in students.values() for name in found)), students


def _cell(text: str, most: int = LONGEST) -> str:
    """The text on one line, as a cell that no spreadsheet takes for a formula."""
    return no_formula(line(text, most))


def _feedback(grade: Grade) -> str:
    """The points and comments of all parts in one cell, for grade books and letters."""
    of = (part for part in grade.parts if part.points)
    given = ((one, "-" if one.earned is None else _points(one.earned)) for one in of)
    said = (f"{one.label}: {points} of {one.points:g}, {line(one.comment)}" for one, points in given)
    return _cell("; ".join([*_on_leaderboard(grade), *said]), LONGEST_CELL)


def _on_leaderboard(grade: Grade) -> list[str]:
    return [f"On the leaderboard: {grade.pseudonym}"] if grade.pseudonym and grade.status is Status.GRADED else []


def _names_of(name: str) -> tuple[str, str]:
    """First and last name of `Last, First` or `First Last`."""
    last, comma, first = name.partition(",")
    if not comma:
        first, _, last = name.rpartition(" ")
    return first.strip(), last.strip()
