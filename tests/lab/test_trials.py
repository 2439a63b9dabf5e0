"""Students' policies that the grader runs: a wrong or hostile one costs its own trial, says why, and no other grade."""

import csv
from pathlib import Path

import pytest

from scpslab.running import RunOptions
from scpslab_course.course.answers import read_practice
from scpslab_course.course.assignment import INSTRUCTOR, SOLUTION, STARTER, find, load_assignment, load_marking
from scpslab_course.course.runs import carry_out, planned, planned_hidden
from scpslab_course.grading import grader
from scpslab_course.grading.grade import Status
from tests.lab.cheats import repacked
from tests.lab.command import ended
from tests.lab.made_up_class import MadeUpClass

TRANSPORTS = (Path(__file__).parents[1] / "data" / "faulty_transports.py").read_text()
STOP_AND_WAIT = (Path(__file__).parents[1] / "same_bytes" / "stop_and_wait.py").read_bytes()
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
    shows: [transfer_s, utilization, status]
"""
NOISY = """kind: scenario
version: 1
title: Noisy
topology: point_to_point
links: {hop: {forward: {rate: 100 kbit/s, delay: 100 ms}, return: {delay: 100 ms}}}
workloads:
  - {kind: policy, name: transfer, policy: policy.py, from: h1, to: h2, size: 5 kB, timeout: 60 s}
limits: {wall_time: 8 s}
"""
ADDED = {"assignment.yaml": TRIED, "instructor/marking.yaml": HIDDEN, "instructor/noisy.yaml": NOISY}
POLICY = """
class Policy:
    def __init__(self, segments, packet_bytes):
        self.segments = segments
    def on_start(self, now):
        {}
    def on_ack(self, now, ack):
        return [], None
    def on_timer(self, now):
        return [], None
"""
# What a file does, and words of what the student reads. More that a policy can do to its cell: test_policy.py.
WRONG = {
    "an endless loop": (POLICY.format("while True: pass").encode(), "the program did not answer any more"),
    "an exception": (POLICY.format("return [1 // 0], None").encode(), "ZeroDivisionError"),
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
    made = MadeUpClass(folder, ["anna"], added=ADDED)
    content = made.hand_in("anna", "right", "anna", {"policy.py": STOP_AND_WAIT}).file.read_bytes()
    files = {}
    for number, (name, code) in enumerate(
        {"right": STOP_AND_WAIT, **{name: code for name, (code, _) in WRONG.items()}}.items()
    ):
        files[name] = folder / f"{number}.submission.tar.gz"
        files[name].write_bytes(repacked(content, {"files/policy.py": code}))
    options, who = RunOptions(out=folder / "again"), dict.fromkeys(files.values(), "anna")
    settings = grader.Settings(made.course, "term-1", made.course.secret(), options, who)
    return dict(zip(files, grader.grade(list(files.values()), settings), strict=True))


def trial_of(grade):
    return next(part for part in grade.parts if part.kind == "trial")


def test_a_right_policy_has_the_share_that_the_formula_gives(grades):
    trial = trial_of(grades["right"])
    took_s = float(trial.comment.split("transfer_s ")[1].split(",")[0])
    assert trial.earned == pytest.approx(4 * 2 * 5000 * 8 / 100_000 / took_s, rel=0.01)
    assert 0 < trial.earned < 4
    # The leaderboard has the numbers that the student reads.
    assert trial.numbers["transfer_s"] == pytest.approx(took_s, rel=0.001)
    assert "status completed" in trial.comment
    assert set(trial.numbers) == {"transfer_s", "utilization"}
    assert grades["right"].pseudonym


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_or_hostile_policy_costs_its_trial_and_says_why(grades, name):
    trial = trial_of(grades[name])

    assert trial.earned == 0
    assert WRONG[name][1] in trial.comment, trial.comment
    assert trial.numbers == {}


def test_no_policy_changes_another_part_of_a_grade(grades):
    right = {part.name: part.earned for part in grades["right"].parts if part.kind != "trial"}
    for grade in grades.values():
        assert grade.status is Status.GRADED, grade.said
        assert {part.name: part.earned for part in grade.parts if part.kind != "trial"} == right


def test_the_leaderboard_has_every_student_and_none_of_their_words(tmp_path):
    students = ("anna-b", "bo-li", "di-ro")
    made = MadeUpClass(tmp_path, students, added=ADDED)
    programs = (STOP_AND_WAIT, WRONG["markup"][0], WRONG["an exception"][0])
    policies = dict(zip(students, programs, strict=True))
    files = [made.hand_in(one, "right", one, {"policy.py": policy}).file for one, policy in policies.items()]
    board, course = tmp_path / "board.html", made.course

    command = ended("grade", *files, "--course", course.folder, "--leaderboard", board, "--format", "moodle")

    assert command.returncode == 0, command.stderr
    page = board.read_text()
    names = [course.secret().pseudonym("term-1", one) for one in students]
    assert [page.count(name) for name in names] == [1, 1, 1]
    assert page.index(names[0]) < min(map(page.index, names[1:]))
    assert not [word for word in (*students, "alert(1)", "ZeroDivision") if word in page]
    # Nothing is final: a person still marks texts, and grade books wait for them.
    assert not [name for name in names if name in command.stdout]
    rows = csv.DictReader((course.folder / "issued" / "term-1" / "issued.csv").open())
    assert [row["pseudonym"] for row in rows] == names


def test_the_policy_that_is_handed_out_has_few_points_and_the_solution_nearly_all(tmp_path):
    assignment = load_assignment(find("write-your-own"))
    # Any secret: what it draws may not decide whether a policy is good.
    trials = planned_hidden(assignment, {}, load_marking(assignment), bytes(32), "term-1")
    chosen = [one for one in trials if one.name in ("slow", "shallow", "outage")]

    def points(part):
        code = (assignment.folder / part / "policy.py").read_bytes()
        return sum(carry_out(one, code, RunOptions(out=tmp_path / one.name)).share * one.trial.points for one in chosen)

    most = sum(one.trial.points for one in chosen)
    earned, solved = points(STARTER), points(f"{INSTRUCTOR}/{SOLUTION}")
    assert earned < 0.1 * most
    assert solved > 0.95 * most


def test_faulty_transports_have_clearly_fewer_points_than_the_solution_and_more_than_what_is_handed_out(tmp_path):
    assignment = load_assignment(find("build-a-transport"))
    marking = load_marking(assignment)
    practice = read_practice(assignment).variant.parameters
    hidden = planned_hidden(assignment, practice, marking, bytes(32), "term-1")
    trials = [
        one for one in [*planned(assignment, practice), *hidden] if one.name in ("clean", "lossy", "reader", "slow")
    ]
    most = sum(one.trial.points for one in trials)

    def share(name, program):
        options = (RunOptions(out=tmp_path / name / one.name) for one in trials)
        ended = [carry_out(one, program, option).share for one, option in zip(trials, options, strict=True)]
        return sum(share * one.trial.points for share, one in zip(ended, trials, strict=True)) / most

    faulty = {
        name: share(name, f"{TRANSPORTS}\n\nSender, Receiver = FAULTY[{name!r}]\n".encode())
        for name in ("no_backoff", "no_retransmission", "no_window")
    }
    assert share("starter", (assignment.folder / STARTER / "transport.py").read_bytes()) == 0
    assert share("solution", (assignment.folder / INSTRUCTOR / SOLUTION / "transport.py").read_bytes()) > 0.98
    assert all(0.1 < one < 0.8 for one in faulty.values()), faulty
