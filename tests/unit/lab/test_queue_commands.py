"""Managed queues in the words of tc: what the plan says, and nothing else."""

from dataclasses import replace

import pytest

from scpslab.lab.stages import DirectionStages, tc_lines
from scpslab.plan.disciplines import Queue
from scpslab.plan.links import Direction

from scpslab.kinds.disciplines.codel.plan import Codel
from scpslab.kinds.disciplines.red.plan import Red

RED = Queue(
    discipline="red",
    limit_bytes=60_000,
    limit_packets=None,
    ecn=False,
    settings=Red(min_bytes=15_000, max_bytes=30_000, probability=0.1),
)


def command(queue):
    direction = Direction(
        name="forward",
        from_="r1",
        to="r2",
        rate_bps=2_000_000,
        overhead_bytes=4,
        queue=queue,
        delay_ns=0,
        delay_table=None,
    )
    return tc_lines(DirectionStages("hop", direction, 1000, 1001, None, None), {1000: "r1-hop", 1001: "r2-hop"})[
        "entering"
    ][-1]


def test_red_has_the_probability_of_the_plan():
    assert " probability 0.1 " in command(RED)


def test_a_red_that_drops_nothing_early_gets_the_least_probability_that_tc_can_state():
    words = command(replace(RED, settings=Red(min_bytes=15_000, max_bytes=30_000, probability=0.0))).split()

    least = float(words[words.index("probability") + 1])
    # tc doubles probability / (max - min) at most 31 times until it is above 1, and gives up then.
    assert 1 < least / 15_000 * 2**31 <= 2


def test_a_red_that_begins_at_the_first_byte_does():
    assert " min 0 max 30000 " in command(replace(RED, settings=Red(min_bytes=0, max_bytes=30_000, probability=0.1)))


@pytest.mark.parametrize(("limits", "packets"), [((60_000, None), 40), ((None, 7), 7)])
def test_codel_has_the_times_of_the_plan(limits, packets):
    queue = replace(RED, discipline="codel", settings=Codel(target_ns=7_000_000, interval_ns=10**9))

    words = command(replace(queue, limit_bytes=limits[0], limit_packets=limits[1], ecn=True))

    assert words.endswith(f"codel limit {packets} target 7000us interval 1000000us ecn")
