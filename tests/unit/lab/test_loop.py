"""The lab's event loop."""

import time

from scpslab.lab.loop import Loop


def now_ns() -> int:
    """The loop's clock."""
    return time.clock_gettime_ns(time.CLOCK_REALTIME)


def test_timers_are_called_in_the_order_of_their_instants_and_never_early():
    loop, called = Loop(), []
    start = now_ns()
    for wait_ns in (3_000_001, 1_000_000, 2_500_000, -5):
        loop.at(start + wait_ns, lambda wait_ns=wait_ns: called.append((wait_ns, now_ns() - start)))
    loop.run_until(lambda: len(called) == 4)

    assert [wait_ns for wait_ns, _ in called] == [-5, 1_000_000, 2_500_000, 3_000_001]
    assert all(passed_ns >= wait_ns for wait_ns, passed_ns in called)


def test_a_timer_that_is_set_while_another_waits_comes_first():
    loop, called = Loop(), []
    start = now_ns()
    loop.at(start + 1_000_000, lambda: loop.at(start + 2_000_000, lambda: called.append("inner")))
    loop.at(start + 4_000_000, lambda: called.append("outer"))
    loop.run_until(lambda: "outer" in called)

    assert called == ["inner", "outer"]


def test_the_limit_ends_it():
    assert Loop().run_until(lambda: False, now_ns() + 1_000_000) is False
