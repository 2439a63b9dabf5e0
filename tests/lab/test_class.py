"""A class, end to end: issued, solved by a script, graded.

Every cheat that can be seen is named, and no honest student is held. Every assignment of the project is handed in and
graded once, with the parameters of its practice variant, whose cells other tests run, too; with SCPSLAB_CLASS set (make
test-course) also those that take long.
"""

import dataclasses
import json
import os
import shutil
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from scpslab.running import RunOptions
from scpslab_course.autograder import files_of
from scpslab_course.cli.course import _Reference
from scpslab_course.course.answers import read_practice
from scpslab_course.course.assignment import INSTRUCTOR, SOLUTION, find, load_assignment
from scpslab_course.course.check import State, check
from scpslab_course.course.folder import OWN, load_course, make_course
from scpslab_course.course.runs import run_variant
from scpslab_course.course.variant import signed
from scpslab_course.course.workspace import plan_start, write_new, write_start
from scpslab_course.grading import grader, submission
from scpslab_course.grading.compare import rerun
from scpslab_course.grading.formats import FORMATS, Facts
from scpslab_course.grading.grade import Code, Status
from scpslab_course.grading.review import pages
from tests.lab import parts
from tests.lab.cheats import CHEATS, of_assignment
from tests.lab.made_up_class import COPIED_FROM, SMALL, MadeUpClass, assignments, groups_of, roles
from tests.lab.made_up_students import HONEST, TIMES
from tests.lab.spoilt_submissions import MARKUP, spoilt

FITTING = of_assignment(load_assignment(SMALL))
IS_WHOLE = "SCPSLAB_CLASS" in os.environ
FACTS = Facts("Made up", "term-1")


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The students and their grades."""
    folder, all_roles = tmp_path_factory.mktemp("class"), roles(len(FITTING) + 2 + len(HONEST), FITTING)
    whose = {f"s{number:03}": role for number, role in enumerate(all_roles)}
    made = MadeUpClass(folder, whose, _Reference(None).rows, groups=groups_of(whose))
    students = [made.hand_in(student, role, "s000") for student, role in whose.items()]
    options, who = RunOptions(out=folder / "again"), {one.file: one.id for one in students}
    # No sample: what is edited in a cell that no formula reads, only the log tells.
    settings = grader.Settings(made.course, "term-1", made.course.secret(), options, who, cells=0)
    grades = grader.grade([one.file for one in students], settings)
    return list(zip(students, grades, strict=True))


@pytest.mark.parametrize("role", FITTING)
def test_each_cheat_is_called_what_it_is_and_nothing_else_is_said_of_it(graded, role):
    cheat = CHEATS[role]
    for grade in (grade for student, grade in graded if student.role == role):
        assert {finding.code for finding in grade.findings} == ({cheat.named} if cheat.named else set()), grade.said
        assert cheat.reason in grade.reason
        assert bool(cheat.reason) == (grade.status is Status.UNGRADED)


def test_no_honest_student_is_held_or_remarked_upon(graded):
    honest = [(student.role, grade) for student, grade in graded if student.role in HONEST]

    assert len(honest) == len(HONEST)
    assert {role: grade.said for role, grade in honest if grade.said and role != "late"} == {}
    assert {grade.status for _, grade in honest} == {Status.GRADED}


def test_who_was_copied_from_is_not_held(graded):
    grade = next(grade for student, grade in graded if student.role == COPIED_FROM)

    assert {finding.code for finding in grade.findings} == {Code.EQUAL_TEXTS, Code.EQUAL_LOGS}
    assert grade.status is Status.GRADED


def test_right_answers_have_all_points_and_planted_mistakes_their_share(graded):
    for student, grade in graded:
        marked = {part.name: part for part in grade.parts if part.kind == "answer" and part.earned is not None}
        if student.role in ("right", "right-in-other-words", "rounded"):
            assert all(part.earned == part.points for part in marked.values()), (student.role, marked)
            # Their intervals have a width.
            assert grade.score == pytest.approx(grade.most - grade.waiting, rel=0.02)
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
            # What names others is for who marks.
            own, of_class = ({one.code for one in grade.findings if one.is_of_class is it} for it in (False, True))
            assert {code for code in own | of_class if code in found["output"]} == own
    table = FORMATS["table"].write([grade for _, grade in graded], FACTS)
    assert all(f"{student.id}.submission.tar.gz" in table for student, _ in graded)


@pytest.mark.parametrize("name", assignments(IS_WHOLE))
def test_every_assignment_is_handed_in_and_its_solution_has_all_points(name, tmp_path, monkeypatch):
    # Hidden trials are drawn from the secret; these are the same every time.
    monkeypatch.setattr(
        "scpslab_course.course.variant.secrets", SimpleNamespace(token_bytes=lambda size: bytes(range(size)))
    )
    course = make_course(tmp_path / "satnet", "Made up", "term-1", [name])
    assignment = load_assignment(find(name))
    mine = signed(
        dataclasses.replace(read_practice(assignment).variant, term="term-1", student="anna", members=("anna",)),
        course.secret(),
    )
    workspace = write_start(plan_start(assignment, mine), assignment, mine, tmp_path / "mine", TIMES[0])
    for key, truth in read_practice(assignment).expected.predictions.items():
        is_interval = assignment.file.predictions[key].kind == "interval"
        workspace.add(TIMES[1], "predict", key, f"{truth}..{truth}" if is_interval else str(truth))
    for one in assignment.file.scenarios:
        run_variant(assignment, mine.parameters, RunOptions(out=workspace.runs), scenarios=[one])
        workspace.add(TIMES[2], "run", one)
    shutil.copytree(assignment.folder / INSTRUCTOR / SOLUTION, workspace.folder, dirs_exist_ok=True)
    unfinished = [found for found in check(workspace) if found.state is not State.DONE]
    handed_in = tmp_path / "mine.submission.tar.gz"
    handed_in.write_bytes(submission.pack(workspace))
    # Nobody has drawn this variant: a grading host without the secret, which has what an autograder's archive has, takes
    # the signature's word.
    write_new(dict(files_of(course, "term-1", assignment)), course.folder / OWN / name, "")
    (grade,) = grader.grade(
        [handed_in], grader.Settings(course, "term-1", None, RunOptions(out=tmp_path / "again"), {handed_in: "anna"})
    )

    assert (grade.status, grade.said) == (Status.GRADED, ())
    short = [
        part.name
        for part in grade.parts
        if part.earned is not None and part.earned != pytest.approx(part.points, rel=0.01)
    ]
    if (unfinished or short) and (differs := parts.not_published()):
        pytest.skip(f"found other answers, in a lab of other parts: {differs}")
    assert (unfinished, short) == ([], [])
    assert grade.most == pytest.approx(assignment.file.points)


@pytest.fixture(scope="module")
def without_runs(graded):
    """A right submission, and settings with which the grader runs no cell again but takes the first results."""
    student = next(student for student, _ in graded if student.role == "right")
    folder = student.file.parents[1]
    course = load_course(folder / "satnet")
    found = grader.Settings(course, "term-1", course.secret(), RunOptions(out=folder / "again"), {})
    kept = []

    def run_once(*arguments):
        if not kept:
            kept.append(rerun(*arguments))
        return kept[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grader, "rerun", run_once)
        assert grader.grade([student.file], found)[0].status is Status.GRADED
        yield student.file, found


@hypothesis_settings(
    max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
@given(st.data())
def test_any_submission_is_graded_or_refused_with_its_reason(without_runs, tmp_path, data):
    file, settings = without_runs
    path = tmp_path / "some.submission.tar.gz"
    path.write_bytes(spoilt(file.read_bytes(), data))

    (grade,) = grader.grade([path], settings)

    assert grader.BROKEN not in grade.reason, grade.reason
    assert (grade.status is Status.UNGRADED) == bool(grade.reason)
    for form in FORMATS.values():
        form.write([grade], FACTS).encode()
    for text in pages([grade], FACTS).values():
        assert MARKUP not in text
