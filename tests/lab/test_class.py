"""A class, end to end: issued, solved by a script, graded. Every cheat is named, and no honest student is held.

SCPSLAB_CLASS=60 (make test-course) takes a class of 60 with the assignment first-steps, and grades without the result cache.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from scpslab.cli.course import _Reference
from scpslab.course.assignment import find, load_assignment
from scpslab.course.folder import make_course
from scpslab.grading import grader
from scpslab.grading.formats import FORMATS, Facts
from scpslab.grading.grade import Status
from scpslab.running import RunOptions
from tests.lab.made_up_class import CHEATS, MadeUpClass, roles

pytestmark = pytest.mark.lab
COUNT = int(os.environ.get("SCPSLAB_CLASS", "14"))
IS_WHOLE = COUNT >= 60
SMALL = Path(__file__).parents[1] / "data" / "small_assignment"
FACTS = Facts("Made up", "term-1", "2026-11-22T20:00:00Z")


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The students and their grades."""
    folder = tmp_path_factory.mktemp("class")
    name = "first-steps" if IS_WHOLE else "small"
    course = make_course(folder / "satnet", "Made up", "term-1", [name])
    if not IS_WHOLE:
        shutil.copytree(SMALL, folder / "satnet" / "assignments" / name)
    assignment = load_assignment(find(name, (folder / "satnet" / "assignments",))) if not IS_WHOLE else load_assignment(find(name))
    made = MadeUpClass(course, assignment, folder / "students")
    ids = [f"s{number:03}" for number in range(COUNT)]
    (folder / "students").mkdir()
    (folder / "roster.csv").write_text("student\n" + "\n".join(ids) + "\n")
    made.issue(folder / "roster.csv", _Reference(None).rows)
    students = [made.hand_in(student, role, ids[-1 - number]) for number, (student, role) in enumerate(zip(ids, roles(COUNT), strict=True))]
    options = RunOptions(out=folder / "again", use_cache=not IS_WHOLE)
    submitters = {one.file: one.id for one in students}
    begun = time.monotonic()
    grades = grader.grade([one.file for one in students], grader.Settings(course, "term-1", course.secret(), options, submitters))
    sizes = sorted(one.file.stat().st_size for one in students)
    print(f"{COUNT} submissions graded in {(time.monotonic() - begun) / 60:.1f} min; submissions of {sizes[0]} to {sizes[-1]} B")
    return list(zip(students, grades, strict=True))


@pytest.mark.parametrize("role", CHEATS)
def test_each_cheat_is_named(graded, role):
    grade = next(grade for student, grade in graded if student.role == role)

    assert CHEATS[role] in {finding.code for finding in grade.findings}, grade.said


def test_only_its_own_cheat_is_said_of_a_cheat(graded):
    for student, grade in graded:
        if student.role in CHEATS:
            assert {finding.code for finding in grade.findings} == {CHEATS[student.role]}, (student.role, grade.said)


def test_no_honest_student_is_held_or_remarked_upon(graded):
    honest = [grade for student, grade in graded if student.role not in CHEATS]

    assert len(honest) == COUNT - len(CHEATS)
    assert [grade.said for grade in honest if grade.said] == []
    assert {grade.status for grade in honest} == {Status.GRADED}


def test_right_answers_have_all_points_and_planted_mistakes_their_share(graded):
    for student, grade in graded:
        marked = {part.name: part for part in grade.parts if part.kind == "answer" and part.earned is not None}
        if student.role in ("right", "right-in-other-words", "rounded"):
            assert all(part.earned == part.points for part in marked.values()), (student.role, marked)
            assert grade.score == pytest.approx(grade.most)
        if student.role == "mistaken":
            assert all(part.earned < part.points for part in marked.values()), marked
            assert any(part.earned > 0 for part in marked.values())
        if student.role == "blank":
            assert sum(part.earned for part in marked.values()) == 0
            assert {part.comment for part in marked.values()} == {"no answer"}


def test_the_late_prediction_has_no_points_and_the_rest_counts(graded):
    grade = next(grade for student, grade in graded if student.role == "late-prediction")

    assert grade.status is Status.GRADED
    assert all(part.earned == 0 for part in grade.parts if part.kind == "prediction")
    assert all(part.earned == part.points for part in grade.parts if part.kind == "answer" and part.earned is not None)


def test_every_format_takes_the_class_and_gives_no_zero_to_who_is_held(graded):
    for _, grade in graded:
        found = json.loads(FORMATS["gradescope"].write([grade], FACTS))
        assert ("score" in found) == (grade.status is Status.GRADED)
        if grade.status is not Status.GRADED:
            assert all(finding.code in found["output"] for finding in grade.findings)
    table = FORMATS["table"].write([grade for _, grade in graded], FACTS)
    assert all(f"{student.id}.submission.tar.gz" in table for student, _ in graded)
