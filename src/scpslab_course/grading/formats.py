"""The forms in which grades leave the laboratory. A format is a function here, and its line in FORMATS.

Without a grade no form has a score: platforms would take one for a 0, and an empty cell of a grade book may delete one.
A student's words are plain text on one line, so that no terminal, browser, platform or spreadsheet obeys them.
"""

from __future__ import annotations

import base64
import json
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree as ET

from scpslab.analysis.output import csv_text, no_formula
from scpslab_course.course.folder import Student
from scpslab_course.grading.grade import Grade, Graded, Status

LONGEST = 2000
# A spreadsheet's cell holds 32,767.
LONGEST_CELL = 30_000
UNSEEN = "a path that you have not seen: numbers are not shown"
# Key of Classroom 50's result to the variable that its runner sets.
FROM_ENVIRONMENT = {
    **{name: name.upper() for name in ("classroom", "assignment", "owner")},
    **{name: f"{name.upper()}_URL" for name in ("commit", "release", "review")},
    "submission": "SUBMISSION_TAG",
}
# PrairieLearn takes 1 MB.
LONGEST_TEXT, MOST_TESTS = 1000, 200
# Not every platform says whether it escapes: these begin markup.
MARKUP = {ord("<"): "‹", ord(">"): "›", ord("&"): "+", ord("`"): "'"}
# Marks that platforms obey, taken apart: GitHub's runner takes a line of a step's output for a command that begins with
# "::" or has "##[" anywhere, such as the report of points (actions/runner, ActionCommand.cs); VPL's grade, and end a
# comment.
BROKEN_UP = {"::": ": :", "##[": "# # [", ":=>>": ": = > >", "<|--": "< | - -", "--|>": "- - | >"}
# Canvas knows its own columns by these names and this order; every further one is an assignment.
CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
MAIL_MERGE = ("email", "name", "student", "assignment", "score", "of", "feedback")
NBGRADER = (
    *("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"),
    *("raw_score", "late_submission_penalty", "score", "max_score"),
)
TABLE = ("status", "score", "of", "for a person", "student", "submission")


@dataclass(frozen=True)
class Facts:
    """What a format needs besides grades: the course's title and term, students by id, the time, platform variables."""

    course: str
    term: str
    at: str
    students: Mapping[str, Student] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Format:
    """A form of grades. `of_one`: of a platform that grades one submission at a time; other forms take a class."""

    says: str
    suffix: str
    write: Callable[[Sequence[Grade], Facts], str]
    of_one: bool = True


def line(text: str, most: int = LONGEST) -> str:
    """A student's text on one line, without what a terminal, browser, spreadsheet or platform obeys."""
    plain = "".join(" " if unicodedata.category(letter)[0] in "CZ" else letter for letter in text[: most + 1])
    words = " ".join(plain.split())
    for mark, apart in BROKEN_UP.items():
        while mark in words:
            words = words.replace(mark, apart)
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


def table(grades: Sequence[Grade], _: Facts) -> str:
    """Plain text: a line for each submission, and below it what was found."""
    rows = [TABLE, *map(_row, grades)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row, said in zip(rows, [(), *(grade.said for grade in grades)], strict=True):
        lines.append("  ".join(map(str.ljust, row, widths)).rstrip())
        lines += [f"    {line(text)}" for text in said]
    counts = [f"{sum(grade.status is status for grade in grades)} {status}" for status in Status]
    return "\n".join([*lines, "", ", ".join(counts), ""])


def gradescope(grades: Sequence[Grade], _: Facts) -> str:
    """Gradescope's results.json: texts are declared as plain; without `score` the autograder is said to have failed.

    No test is hidden: one hidden test hides the total. Points that a person gives are given there, by the rubric.
    """
    grade = _only(grades)
    codes = [finding.code for finding in grade.findings]
    extra = {"status": grade.status, "sha256": grade.sha256, "findings": codes, "cells": list(grade.cells)}
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


def github_classroom(grades: Sequence[Grade], _: Facts) -> str:
    """The output `result` of a grading step of GitHub Classroom, base64 of JSON. Scores are hundredths of points.

    Without a grade the status is `error`, and the exit code of the command fails the step. The most points are 0 then:
    otherwise GitHub's reporter adds up points that are not there, and reports no number.
    """
    grade = _only(grades)
    unused = {"test_code": "", "filename": "", "line_no": 0, "duration": 0}
    tests: list[dict[str, object]] = []
    for part, earned in _marked(grade):
        said = {"name": line(part.label, 200), "status": "pass" if part.is_right else "fail"}
        tests.append({**said, "score": _hundredths(earned), "message": line(part.comment), **unused})
    status = "pass" if all(test["status"] == "pass" for test in tests) else "fail"
    if grade.status is not Status.GRADED:
        tests, status = [{"name": "grading", "status": "error", "message": comment(grade)}], "error"
    most = 0 if status == "error" else _hundredths(grade.most)
    found = {"version": 1, "status": status, "max_score": most, "tests": tests}
    return base64.b64encode(json.dumps(found).encode()).decode("ascii") + "\n"


def classroom50(grades: Sequence[Grade], facts: Facts) -> str:
    """Classroom 50's result.json (classroom50/result/v1). Scores are hundredths of points.

    It refuses a result without links: what its runner does not set is made as the runner makes it.
    """
    grade = _only(grades)
    set_ = defaultdict(str, {"GITHUB_SERVER_URL": "https://github.com", **facts.environment})
    where = f"{set_['GITHUB_SERVER_URL']}/{set_['GITHUB_REPOSITORY']}"
    commit = set_["COMMIT_URL"] or f"{where}/commit/{set_['GITHUB_SHA']}"
    release = f"{where}/releases/tag/{quote(set_['SUBMISSION_TAG'], safe='')}"
    made = {"assignment": grade.assignment, "commit": commit, "review": commit, "release": release}
    given = {key: set_[name] or made.get(key, "") for key, name in FROM_ENVIRONMENT.items()}
    kind = "group" if len(grade.members) > 1 else "individual"
    found: dict[str, object] = {"schema": "classroom50/result/v1", **given, "assignment_type": kind}
    found |= {"datetime": facts.at, "graded_at": facts.at}
    if grade.status is Status.GRADED:
        found |= {"score": _hundredths(grade.score), "max-score": _hundredths(grade.most)}
        found["tests"] = [
            {
                "test-name": line(part.label, 200),
                "passed": part.is_right,
                "score": _hundredths(earned),
                "max-score": _hundredths(part.points),
                "message": line(part.comment),
            }
            for part, earned in _marked(grade)
        ]
    return _json(found | {"status": grade.status, "message": comment(grade)})


def prairielearn(grades: Sequence[Grade], _: Facts) -> str:
    """PrairieLearn's results.json of an external grader. Without a grade it is not gradable: no attempt is lost."""
    grade = _only(grades)
    said = comment(grade).translate(MARKUP)
    if grade.status is not Status.GRADED:
        return _json({"gradable": False, "format_errors": [said], "message": said})
    tests = []
    for part, earned in _marked(grade)[:MOST_TESTS]:
        texts = {"description": part.question, "message": part.comment, "output": part.given}
        plain = {key: line(text, LONGEST_TEXT).translate(MARKUP) for key, text in texts.items()}
        tests.append({"name": line(part.label, 200), "points": earned, "max_points": part.points, **plain})
    share = min(1.0, max(0.0, grade.score / grade.most)) if grade.most else 0.0
    return _json({"gradable": True, "score": share, "message": said, "tests": tests})


def vpl(grades: Sequence[Grade], facts: Facts) -> str:
    """What an evaluation of Moodle's VPL prints. Moodle sets bounds of the score; without them it is in points.

    Without a line `Grade :=>>` Moodle proposes none. Every line of the comment begins with an indent.
    """
    grade = _only(grades)
    lines = comment(grade).splitlines()
    for part in grade.parts:
        points = "a person decides" if part.earned is None else f"{_points(part.earned)} of {part.points:g}"
        lines.append(f"{part.label}: {points}; {part.comment}")
    text = "".join(f" {line(said)}\n" for said in lines)
    try:
        low, high = (float(facts.environment[name]) for name in ("VPL_GRADEMIN", "VPL_GRADEMAX"))
        score = low + (high - low) * (grade.score / grade.most if grade.most else 0)
    except (KeyError, ValueError):
        score = grade.score
    return f"<|--\n{text}--|>\n" + (f"Grade :=>>{score:.2f}\n" if grade.status is Status.GRADED else "")


def nbgrader(grades: Sequence[Grade], facts: Facts) -> str:
    """CSV of nbgrader: a line for each student with a grade. The gradebook keeps what it has of all others."""
    rows: list[Sequence[str]] = [NBGRADER]
    for student, grade in _students(grades, facts):
        first, last = _names_of(student.name)
        texts = (grade.assignment, "", facts.at, student.id, last, first, student.email)
        rows.append([*map(_cell, texts), _points(grade.score), "0", *_score(grade)])
    return csv_text(rows)


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


def mail_merge(grades: Sequence[Grade], facts: Facts) -> str:
    """A line for each student: address, name, points, and the comments on all parts."""
    rows = (
        [*map(_cell, (one.email, one.name, one.id, grade.assignment)), *_score(grade), _feedback(grade)]
        for one, grade in _finals(grades, facts)
    )
    return csv_text([MAIL_MERGE, *rows])


def junit(grades: Sequence[Grade], facts: Facts) -> str:
    """JUnit XML: a suite for each submission, a case for each part.

    A part that waits for a person is skipped; a submission without a grade is an error.
    """
    root = ET.Element("testsuites", name=line(facts.course, 200))
    for grade in map(_unseen, grades):
        name = line(grade.student or grade.path.name, 200)
        parts = grade.parts if grade.status is Status.GRADED else (None,)
        suite = ET.SubElement(root, "testsuite", name=name, tests=f"{len(parts)}", time=f"{grade.seconds:.1f}")
        for part in parts:
            case = ET.SubElement(suite, "testcase", classname=name, name=line(part.label, 200) if part else "grading")
            if part is None:
                ET.SubElement(case, "error", message=line(comment(grade)), type=grade.status)
            elif part.earned is None:
                ET.SubElement(case, "skipped", message=line(part.comment) or "a person marks it")
            elif not part.is_right:
                said = f"{_points(part.earned)} of {part.points:g}: {line(part.comment)}"
                ET.SubElement(case, "failure", message=said)
        for counted, plural in {"failure": "failures", "error": "errors", "skipped": "skipped"}.items():
            suite.set(plural, f"{len(suite.findall(f'testcase/{counted}'))}")
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


FORMATS = {
    "table": Format("a line for each submission, and what was found", ".txt", table, of_one=False),
    "gradescope": Format("Gradescope's results.json", ".json", gradescope),
    "github-classroom": Format("the result of a step of GitHub Classroom", ".txt", github_classroom),
    "classroom50": Format("result.json of Classroom 50", ".json", classroom50),
    "prairielearn": Format("PrairieLearn's results.json", ".json", prairielearn),
    "vpl": Format("the output of an evaluation of Moodle's VPL", ".txt", vpl),
    "nbgrader": Format("nbgrader's CSV", ".csv", nbgrader, of_one=False),
    "moodle": Format("CSV for Moodle's gradebook, final grades alone", ".csv", moodle, of_one=False),
    "canvas": Format("CSV for Canvas' gradebook, final grades alone", ".csv", canvas, of_one=False),
    "mail-merge": Format("CSV for a mail merge, final grades alone", ".csv", mail_merge, of_one=False),
    "junit": Format("JUnit XML", ".xml", junit, of_one=False),
}


def _row(grade: Grade) -> tuple[str, ...]:
    points = (grade.score, grade.most, grade.waiting)
    numbers = [f"{number:g}" if grade.parts else "-" for number in points]
    return grade.status, *numbers, line(grade.submitter or grade.student or "-", 60), line(str(grade.path), 200)


def _only(grades: Sequence[Grade]) -> Grade:
    """The one grade of a platform that shows it at once."""
    (grade,) = grades
    return _unseen(grade)


def _unseen(grade: Grade) -> Grade:
    """Without what hidden trials have measured: otherwise every upload would measure their paths. A program may put its
    numbers into an error, too.
    """
    parts = (part if part.numbers is None else replace(part, comment=UNSEEN) for part in grade.parts)
    return replace(grade, parts=tuple(parts))


def _marked(grade: Grade) -> list[tuple[Graded, float]]:
    """The parts that have points, with these points."""
    return [(part, part.earned) for part in grade.parts if part.earned is not None]


def _json(found: Mapping[str, object]) -> str:
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _hundredths(points: float) -> int:
    """Points as a whole number, for forms that have no others."""
    return round(100 * points)


def _points(points: float) -> str:
    """Points to the hundredth, however many there are: four digits would cut those of a hundred points off."""
    return f"{round(points, 2):.10g}"


def _score(grade: Grade) -> tuple[str, str]:
    return _points(grade.score), f"{grade.most:g}"


def several(grades: Iterable[Grade]) -> dict[tuple[str, str], list[Path]]:
    """The files of each student and assignment that has several different ones: a person knows which one counts."""
    found: dict[tuple[str, str], dict[str, Path]] = defaultdict(dict)
    for grade in grades:
        for student in grade.recipients:
            found[student, grade.assignment].setdefault(grade.sha256, grade.path)
    return {whose: list(paths.values()) for whose, paths in found.items() if len(paths) > 1}


def _students(grades: Sequence[Grade], facts: Facts) -> Iterator[tuple[Student, Grade]]:
    """Students with their grades: every member of a group has one line, and none who has handed in several files."""
    known = set(several(grades))
    for grade in grades:
        for student in grade.recipients if grade.status is Status.GRADED else ():
            if (whose := (student, grade.assignment)) not in known:
                known.add(whose)
                yield facts.students.get(student, Student(student)), grade


def _finals(grades: Sequence[Grade], facts: Facts) -> Iterator[tuple[Student, Grade]]:
    """Students with their final grades, which are all that a grade book gets."""
    return ((student, grade) for student, grade in _students(grades, facts) if grade.is_final)


def _book(grades: Sequence[Grade], facts: Facts) -> tuple[list[str], dict[Student, dict[str, Grade]]]:
    """The assignments of these grades, and the final grades by student, for books with a line for each of them."""
    students: dict[Student, dict[str, Grade]] = {}
    for student, grade in _finals(grades, facts):
        students.setdefault(student, {})[grade.assignment] = grade
    return list(dict.fromkeys(name for found in students.values() for name in found)), students


def _cell(text: str, most: int = LONGEST) -> str:
    """The text on one line, as a cell that no spreadsheet takes for a formula."""
    return no_formula(line(text, most))


def _feedback(grade: Grade) -> str:
    """The points and comments of all parts in one cell, for grade books and letters."""
    of = (part for part in grade.parts if part.points)
    said = (f"{one.label}: {_points(one.earned or 0)} of {one.points:g}, {line(one.comment)}" for one in of)
    return _cell("; ".join([*_on_leaderboard(grade), *said]), LONGEST_CELL)


def _on_leaderboard(grade: Grade) -> list[str]:
    return [f"On the leaderboard: {grade.pseudonym}"] if grade.pseudonym and grade.status is Status.GRADED else []


def _names_of(name: str) -> tuple[str, str]:
    """First and last name of `Last, First` or `First Last`."""
    last, comma, first = name.partition(",")
    if not comma:
        first, _, last = name.rpartition(" ")
    return first.strip(), last.strip()
