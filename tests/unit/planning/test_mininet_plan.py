"""A network that a Mininet script describes: read strictly, and made a plan that any reader of plans takes."""

import json
from typing import Any

import pytest

from scpslab import plan as plans
from scpslab.plan.mininet import Described, MininetScript
from scpslab.plan.schema import PlanError
from scpslab.scenario.planning.mininet import EMPTY, plan_of
from tests import golden
from tests.cases import refusal, with_value

from scpslab.kinds.errors.packet.plan import PacketLoss

SCRIPT = MininetScript(file="net.py", code="", topo=None, test="cli", commands="", described="")
PLAIN = {"mac": None, "rate_bps": None, "limit_packets": 1000, "delay_ns": 0, "jitter_ns": 0, "loss": 0.0}
SHAPED = PLAIN | {"rate_bps": 10**7, "delay_ns": 5 * 10**6, "jitter_ns": 10**6, "loss": 0.01, "limit_packets": 50}


def end(node, number, ip=None, **said):
    return PLAIN | {"node": node, "interface": f"{node}-eth{number}", "ip": ip} | said


FIELDS: dict[str, Any] = {
    "nodes": [
        {"name": name, "kind": kind}
        for name, kind in (("h1", "host"), ("s1", "switch"), ("x1", "switch"), ("h2", "host"))
    ],
    "links": [
        {"ends": [end("h1", 0, "10.0.0.1/8"), end("s1", 1)], "changes": False},
        {"ends": [end("s1", 2, **SHAPED), end("x1", 1, **SHAPED | {"rate_bps": 10**6})], "changes": False},
        {"ends": [end("h2", 0, "10.0.0.2/8", mac="00:00:00:00:00:02"), end("x1", 2)], "changes": False},
    ],
    "notes": [],
}


def test_rates_delays_and_losses_are_those_of_the_sending_end():
    plan = plan_of(Described.read(FIELDS), SCRIPT, 1, 60)

    assert plans.parse(plans.text(plan)) == plan
    assert [link.name for link in plan.network.links] == ["h1-s1", "s1-x1", "h2-x1"]
    first, shaped, last = plan.network.links
    # The relay of the link has a name that no node of the script has.
    assert (first.via, shaped.via, last.via) == (None, "x1x", None)
    assert [end.interface for end in shaped.ends] == ["s1-eth2", "x1-eth1"]
    assert (last.ends[0].mac, last.ends[0].ip) == ("00:00:00:00:00:02", "10.0.0.2/8")
    there, back = shaped.directions
    assert (there.name, there.rate_bps, there.overhead_bytes, there.delay_ns) == ("to-x1", 10**7, 14, 5 * 10**6)
    assert (back.name, back.rate_bps) == ("to-s1", 10**6)
    assert there.queue is not None
    assert (there.queue.limit_packets, there.queue.discipline) == (50, "drop-tail")
    lost, lost_back = (plan.cell.errors("s1-x1", name) for name in ("to-x1", "to-s1"))
    assert lost is not None
    assert lost_back is not None
    assert (lost.settings, lost.seed == lost_back.seed) == (PacketLoss(loss=0.01), False)
    assert plan.cell.errors("h1-s1", "to-s1") is first.directions[0].queue is first.directions[0].rate_bps is None


def test_a_link_that_changes_has_every_stage_from_the_beginning():
    fields = FIELDS | {"links": [link | {"changes": True} for link in FIELDS["links"]]}
    plan = plan_of(Described.read(fields), SCRIPT, 1, 60, packages=("iptables",))
    assert plan.network.pack is not None
    assert plan.network.pack.packages == ("iptables",)
    for link in plan.network.links:
        assert link.via is not None
        for there in link.directions:
            assert there.queue is not None
            assert (there.queue.limit_packets, there.jitter_ns) == (8191, 0)
            assert plan.cell.errors(link.name, there.name) is not None
    assert [link.directions[0].rate_bps for link in plan.network.links] == [10**11, 10**7, 10**11]


def test_only_the_seed_changes_what_is_drawn():
    described = Described.read(FIELDS)
    assert plan_of(described, SCRIPT, 1, 60) == plan_of(described, SCRIPT, 1, 60)
    first, second = (plan_of(described, SCRIPT, seed, 60) for seed in (1, 2))
    assert first.network == second.network
    assert first.cell.impairments != second.cell.impairments
    assert plan_of(EMPTY, SCRIPT, 1, 60).network.links == ()


LOOP = FIELDS["links"][1] | {"ends": [end("s1", 3), end("x1", 3)]}


@golden.each("network of a Mininet script", "case way value")
def test_networks_that_cannot_be_are_refused(case, way, value):
    described = Described.read(with_value(FIELDS, way, LOOP if value == "LOOP" else json.loads(value)))
    assert case.hold(refusal(plan_of, described, SCRIPT, 1, 60)).startswith("net.py: ")


@golden.each("no description of a network", "case way value")
def test_what_is_no_description_is_not_read(case, way, value):
    case.hold(refusal(Described.read, with_value(FIELDS, way, json.loads(value)), error=PlanError))


@pytest.mark.parametrize("part", ["nodes", "links"])
def test_a_network_of_too_many_is_not_read(part, told):
    told(
        "no description of a network: size", part, Described.read, FIELDS | {part: FIELDS[part] * 100}, error=PlanError
    )
