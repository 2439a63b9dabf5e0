"""Events that follow a line of a file of their cell: what a scenario and a plan say of them."""

import pytest

from scpslab import plan as plans
from scpslab.runs.store import cell_key
from scpslab.scenario import planning
from tests import golden
from tests.cases import refusal

SCENARIO = """\
kind: scenario
version: 1
topology: point_to_point
workloads: [{{kind: bulk, name: transfer, from: h1, to: h2, size: 100 kB}}]
events:
  - {{{when}link: hop, state: down}}
  - {{at: 5 s, link: hop, state: up}}
"""
AFTER = "after: {log: records/transfer.jsonl, matches: connected, delay: 20 ms}, "


@pytest.fixture
def planned(planned):
    """Plans the scenario with this before the change of the link."""
    return lambda when: planned(SCENARIO.format(when=when))


def test_a_plan_says_what_a_step_follows_and_when_it_came(planned):
    plan = planned(AFTER)
    known, unknown = plan.cell.events
    assert (known.t_ns, unknown.t_ns, unknown.after.delay_ns) == (5 * 10**9, None, 20_000_000)

    ran = plan.at_instants({2: 1234})
    assert plans.parse(plans.text(ran)).cell.events[1].t_ns == 1234
    assert ran.as_planned == plan != ran
    assert cell_key(ran, "engine") == cell_key(plan, "engine")


def test_a_cell_runs_once_more_for_each(planned):
    one, two = (planning.expected(planned(when)).wall_s for when in ("at: 4 s, ", AFTER))
    assert two == 2 * one


@golden.each("event that follows a line")
def test_what_cannot_be_is_refused(planned, tmp_path, case):
    case.hold(refusal(planned, "" if case == "no time" else f"{case} "), tmp_path)
