"""Work in a child with limits: whatever it does, this process goes on, and is told why there is no answer."""

import os
import signal
import time

import pytest

from scpslab.core.errors import LimitError, NewerFormat, ResultError, WorkError
from scpslab.core.limited import WorkLimits, in_child, limited

pytestmark = pytest.mark.slow

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
