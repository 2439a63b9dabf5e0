"""Work in a child with limits: whatever it does, this process goes on, and is told why there is no answer. What a
class hands in reaches the limits of the child that reads it, and no further.
"""

import os
import random
import signal
import time

import pytest

from scpslab.core.errors import LimitError, NewerFormat, ResultError, WorkError
from scpslab.core.limited import WorkLimits, in_child, limited
from scpslab.documents.yaml_lines import read_value
from scpslab_course.course.answers import GivenError, interval, number
from scpslab_course.grading import classwide, grader, submission
from tests.unit.grading.test_classwide import made

SMALL = WorkLimits(memory_bytes=128 << 20, cpu_s=1, wall_s=20, answer_bytes=1 << 20)


def _allocate():
    held = []
    while True:
        held.append(bytearray(1 << 20))


def _recurse():
    return _recurse()


def test_an_answer_comes_back_as_json_gives_it_and_memory_of_the_child_stays_there():
    seen = []

    def work():
        seen.append(1)
        return {"pid": os.getpid(), "found": ("a", None, 0.5, "\ud800")}

    answer = limited(work, SMALL)

    assert answer["found"] == ["a", None, 0.5, "\ud800"]
    assert answer["pid"] != os.getpid()
    assert seen == []


@pytest.mark.parametrize(
    ("work", "says"),
    [
        (_allocate, "found a need for more than 128 MiB of memory"),
        (lambda: sum(1 for _ in iter(int, 1)), "found no end within 1 s of CPU time"),
        (lambda: "x" * (1 << 21), "found an answer of more than 1048576 bytes"),
        (object, "found TypeError"),
        (_recurse, "found RecursionError in test_limited.py"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "found an end without an answer"),
        (lambda: os._exit(0), "found an end without an answer"),
    ],
)
def test_what_ends_the_work_is_said_and_ends_nothing_else(work, says):
    with pytest.raises(LimitError, match=says):
        limited(work, SMALL)


def test_work_that_only_waits_is_ended_too():
    with pytest.raises(LimitError, match=r"found no end within 0.2 s"):
        limited(lambda: time.sleep(600), WorkLimits(wall_s=0.2))


def test_errors_of_ours_keep_their_class_and_text():
    def work():
        raise ResultError("there: found this\nand that")

    with pytest.raises(ResultError, match=r"^there: found this\nand that$"):
        limited(work)

    def newer():
        raise NewerFormat("x: found 9")

    with pytest.raises(ResultError, match="x: found 9"):
        limited(newer)


def test_no_child_is_left(monkeypatch):
    forked = []

    def fork(fork=os.fork):
        forked.append(fork())
        return forked[-1]

    monkeypatch.setattr(os, "fork", fork)
    limited(lambda: 1)
    with pytest.raises(LimitError):
        limited(_allocate, SMALL)

    assert len(forked) == 2
    # Other children of this process may be there: those of other tests.
    for child in forked:
        with pytest.raises(ChildProcessError):
            os.waitpid(child, os.WNOHANG)


def test_a_child_answers_several_times_and_time_between_questions_does_not_count():
    def work():
        value = yield os.getpid()
        while True:
            value = yield value[0](value[1])

    with in_child(work, WorkLimits(wall_s=0.3)) as ask:
        child = ask(None)
        time.sleep(0.5)
        assert ask((sum, [1, 2])) == 3
        with pytest.raises(LimitError, match=r"found no end within 0.3 s"):
            ask((time.sleep, 9))
    assert child != os.getpid()

    with in_child(work) as ask:
        ask(None)
        with pytest.raises(WorkError, match="found ZeroDivisionError"):
            ask((one_by, 0))


def one_by(value):
    return 1 / value


def test_limits_within_limits_are_the_lower_ones():
    with pytest.raises(LimitError, match="memory"):
        limited(lambda: limited(_allocate, WorkLimits(memory_bytes=1 << 40)), SMALL)


@pytest.mark.parametrize(
    ("does", "says"),
    [
        (lambda: bytearray(1 << 30), "more than 512 MiB of memory"),
        (lambda: os.kill(os.getpid(), 9), "found an end without an answer"),
        (lambda: sum(0 for _ in iter(int, 1)), "1 s of CPU time"),
    ],
)
def test_a_submission_that_reaches_a_limit_is_named_and_the_next_one_is_graded(
    does,
    says,
    settings,
    members,
    hand_in,
    monkeypatch,
):
    monkeypatch.setattr(grader, "LIMITS", WorkLimits(cpu_s=1))
    costly, other = hand_in(members), hand_in(members, "other.submission.tar.gz")
    monkeypatch.setattr(submission.Submission, "runs", lambda self: does() if self.path == costly else {})
    told = []

    found = grader.grade([costly, other], settings, told=told.append)

    assert says in found[0].reason
    assert str(costly) in found[0].reason
    assert grader.LIMITED not in found[1].reason
    assert [one.path for one in told] == [costly, other]


@pytest.mark.parametrize(
    "text", [f"1 x{' ' * 100_000}y", f"1{' ' * 100_000}2", f"{' ' * 100_000}x", f"1..2{' ' * 100_000}x y"]
)
def test_spaces_cost_no_time(text):
    def refused() -> str:
        with pytest.raises(GivenError) as caught:
            (interval if ".." in text else number)(text, "s")
        return str(caught.value)

    assert "expected" in limited(refused, WorkLimits(cpu_s=5))


def test_digits_cost_no_time():
    text = f"{'9' * 200_000}e+5"
    assert limited(lambda: str(read_value(text)), WorkLimits(cpu_s=5)) == "inf"


def test_a_write_up_of_numbers_costs_seconds_in_a_class_of_60():
    stream = random.Random(1)
    write_up = " ".join(f"{stream.randint(100_000, 999_999)}.{number:06d}" for number in range(70_000))
    drawn = [{f"answer {number}": stream.uniform(1, 1e6) for number in range(250)} for _ in range(60)]

    def work() -> int:
        others = [made(f"s{number}", numbers) for number, numbers in enumerate(drawn)]
        one = made("writer", drawn[0], write_up)
        return len(list(classwide.findings(one, [one, *others])))

    assert limited(work, WorkLimits(cpu_s=30)) >= 0
