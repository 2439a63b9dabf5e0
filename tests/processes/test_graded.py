"""What a class hands in reaches the limits of the child that reads it, and no further."""

import os
import random

import pytest

from scpslab.core.limited import WorkLimits, limited
from scpslab.documents.yaml_lines import read_value
from scpslab_course.course.answers import GivenError, interval, number
from scpslab_course.grading import classwide, grader, submission
from tests.unit.grading.test_classwide import made


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
