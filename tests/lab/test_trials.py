"""Trials: students' policies that the grader runs.

A wrong or hostile one costs its own trial, says why, and changes nobody else's grade.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from scpslab.running import RunOptions
from scpslab_course.course.answers import read_practice
from scpslab_course.course.assignment import INSTRUCTOR, SOLUTION, STARTER, find, load_assignment, load_marking
from scpslab_course.course.folder import make_course
from scpslab_course.course.runs import carry_out, planned
from scpslab_course.grading import grader
from scpslab_course.grading.grade import Status
from tests.lab.made_up_class import MadeUpClass, repacked

pytestmark = pytest.mark.lab
TESTS = Path(__file__).parents[1]
STOP_AND_WAIT = (TESTS / "same_bytes" / "stop_and_wait.py").read_text()
TRIED = """deliverables:
  - {file: policy.py, says: A policy., points: 4}
"""
HIDDEN = """trials:
  noisy:
    scenario: noisy
    file: policy.py
    says: Two hops.
    share: 2 * mean("noisy", "utilization") * mean("noisy", "efficiency")
    points: 4
"""
NOISY = """kind: scenario
version: 1
title: Noisy
topology: point_to_point
parameters: {data_rate: 100 kbit/s, data_delay: 100 ms, ack_delay: 100 ms}
workloads:
  - {kind: policy, name: transfer, policy: policy.py, from: h1, to: h2, size: 5 kB, patience: 60 s}
limits: {wall: 8 s}
"""
POLICY = """
class Policy:
    def __init__(self, segments, packet_bytes):
        self.segments = segments
    def on_start(self, now):
        {}
    def on_answer(self, now, answer):
        return [], None
    def on_timer(self, now):
        return [], None
"""
# What a file does, and words of what the student reads.
WRONG = {
    "an endless loop": (POLICY.format("while True: pass").encode(), "the policy did not answer any more"),
    "an exception": (POLICY.format("return [1 // 0], None").encode(), "ZeroDivisionError"),
    "a flood": (POLICY.format("return list(range(6)) * 1000, None").encode(), "expected at most 20 times as many"),
    "a fork": (POLICY.format("import os; os.fork()").encode(), "BlockingIOError"),
    "a file that is read": (POLICY.format("open('/cell/plan.json')").encode(), "OSError: [Errno 24]"),
    "output without end": (POLICY.format("while True: print('x' * 100_000)").encode(), "File too large"),
    "markup": (POLICY.format("raise ValueError('<script>alert(1)</script>')").encode(), "<script>"),
    "no Python": (b"\xff\xfe", "not UTF-8"),
    "a syntax error": (b"def", "SyntaxError"),
    "another class": (b"class Police: pass", "AttributeError"),
    "a file too long": (b"#" * 70_000, "65536"),
    "no file": (None, "not handed in"),
}


@pytest.fixture(scope="module")
def grades(tmp_path_factory):
    """The grades of one student's submission with each of these files, all graded in one go."""
    folder = tmp_path_factory.mktemp("trials")
    course = make_course(folder / "satnet", "Made up", "term-1", ["small"])
    own = folder / "satnet" / "assignments" / "small"
    shutil.copytree(TESTS / "data" / "small_assignment", own)
    for name, more in (
        ("assignment.yaml", TRIED),
        ("instructor/marking.yaml", HIDDEN),
        ("instructor/noisy.yaml", NOISY),
    ):
        with (own / name).open("a") as file:
            file.write(more)
    made = MadeUpClass(course, load_assignment(own), folder / "students")
    (folder / "students").mkdir()
    (folder / "roster.csv").write_text("student\nanna\n")
    made.issue(folder / "roster.csv", None)
    content = made.hand_in("anna", "right", "anna", {"policy.py": STOP_AND_WAIT.encode()}).file.read_bytes()
    files = {}
    for number, (name, code) in enumerate(
        {"right": STOP_AND_WAIT.encode(), **{name: code for name, (code, _) in WRONG.items()}}.items()
    ):
        files[name] = folder / f"{number}.submission.tar.gz"
        files[name].write_bytes(repacked(content, {"files/policy.py": code}))
    settings = grader.Settings(
        course, "term-1", course.secret(), RunOptions(out=folder / "again"), dict.fromkeys(files.values(), "anna")
    )
    return dict(zip(files, grader.grade(list(files.values()), settings), strict=True))


def trial_of(grade):
    return next(part for part in grade.parts if part.kind == "trial")


def test_a_right_policy_has_the_share_that_the_formula_gives(grades):
    trial = trial_of(grades["right"])
    assert trial.earned == pytest.approx(
        4 * 2 * 5000 * 8 / 100_000 / float(trial.comment.split("transfer_s ")[1].split(",")[0]), rel=0.01
    )
    assert 0 < trial.earned < 4


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_or_hostile_policy_costs_its_trial_and_says_why(grades, name):
    trial = trial_of(grades[name])

    assert trial.earned == 0
    assert WRONG[name][1] in trial.comment, trial.comment


def test_no_policy_changes_another_part_of_a_grade(grades):
    right = {part.name: part.earned for part in grades["right"].parts if part.kind != "trial"}
    for grade in grades.values():
        assert grade.status is Status.GRADED, grade.said
        assert {part.name: part.earned for part in grade.parts if part.kind != "trial"} == right


def test_the_policy_that_is_handed_out_has_few_points_and_the_solution_nearly_all(tmp_path):
    assignment = load_assignment(find("write-your-own"))
    parameters = read_practice(assignment).variant.parameters
    earned, solved, most = 0.0, 0.0, 0.0
    for one in planned(assignment, parameters, load_marking(assignment)):
        if one.name in ("slow", "shallow", "outage"):
            naive, solution = (
                carry_out(
                    one,
                    (assignment.folder / part / "policy.py").read_bytes(),
                    parameters,
                    RunOptions(out=tmp_path / one.name),
                )
                for part in (STARTER, f"{INSTRUCTOR}/{SOLUTION}")
            )
            earned, solved, most = (
                earned + naive.share * one.trial.points,
                solved + solution.share * one.trial.points,
                most + one.trial.points,
            )

    assert earned < 0.1 * most
    assert solved > 0.95 * most
