"""What the slowest hop offers over a span of time: events change rates."""

from dataclasses import replace

import pytest

from scpslab.analysis.viewpoints import bottleneck, bottleneck_bps, steady_bps
from scpslab.plan.cell import Impairment
from scpslab.plan.events import LinkStep
from scpslab.plan.profiles import Profile

PLANNED = 2_000_000


@pytest.fixture
def at_rates(synthetic):
    """The mean rate over a span, after the steps (seconds, bit/s) of the slowest hop, which is 265 ms from the sink."""

    def mean(steps, span_s):
        plan = synthetic.plan({}, 1)
        events = tuple(
            LinkStep(t_ns=round(t_s * 1e9), link="hop", directions=("forward",), change="rate", value=rate)
            for t_s, rate in steps
        )
        plan = replace(plan, cell=replace(plan.cell, events=events))
        return bottleneck_bps(plan, plan.cell.workloads[0], span_s)

    return mean


def test_without_events_the_rate_is_that_of_the_plan(at_rates):
    assert at_rates([], None) == at_rates([], (1, 2)) == PLANNED


def test_capacity_is_the_integral_of_the_rate(at_rates):
    delay_s = 0.265
    span = (1 + delay_s, 5 + delay_s)
    assert at_rates([(2.0, 500_000)], span) == pytest.approx((PLANNED + 3 * 500_000) / 4)
    assert at_rates([(0.5, 1_000_000), (9.0, 1)], span) == pytest.approx(1_000_000)
    assert at_rates([(3.0, 1_000_000), (2.0, 500_000)], span) == pytest.approx((PLANNED + 500_000 + 2_000_000) / 4)


@pytest.mark.parametrize(("columns", "known"), [(("rate",), False), (("packets",), False), (("delay",), True)])
def test_where_a_profile_says_when_packets_leave_it_is_not_known(synthetic, columns, known):
    """A static rate would give a utilization above 1: the table is in no cell's files."""
    plan = synthetic.plan({}, 1)
    profile = Profile(columns=columns, delay="steps", when_down="lose", reorder=False, until_ns=10**9, table="")
    impairment = Impairment(link="hop", direction="forward", errors=None, profile=profile)
    plan = replace(plan, cell=replace(plan.cell, impairments=(impairment,)))
    hop = bottleneck(plan, plan.cell.workloads[0])
    rates = bottleneck_bps(plan, plan.cell.workloads[0], (1.0, 2.0)), steady_bps(plan, hop)
    assert rates == ((PLANNED, PLANNED) if known else (None, None))


def test_over_an_unknown_time_it_is_not_known(at_rates):
    assert at_rates([(2.0, 500_000)], None) is None
