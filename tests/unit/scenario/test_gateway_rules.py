"""Services of kind gateway that could not start, or would never get a packet, are refused with the file."""

import json

import pytest
import yaml

from scpslab import scenario
from scpslab.plan.disciplines import FRAMED_PACKET_BYTES
from scpslab.scenario import planning
from tests import golden
from tests.cases import refusal

NEAR = {"kind": "gateway", "name": "near", "node": "g1", "peer": "10.9.0.2", "far": ["10.2.0.0/24"]}
NEAR |= {"rate": "2 Mbit/s", "rtt": "1 s"}
FAR = NEAR | {"name": "far", "node": "g2", "peer": "10.9.0.1", "far": ["10.1.0.0/24"]}


def checked(*services):
    chosen = ["sweep.path=[cubic]", f"services={json.dumps(services)}"]
    return scenario.cells(scenario.load("links/gateway:test", chosen))


def test_a_pair_is_taken_and_a_second_gateway_of_a_router_is_not(told):
    assert len(checked(NEAR, FAR)) == 1
    told("gateways of a lab", "a second one", checked, NEAR, NEAR | {"name": "again"})


@golden.each("gateway of a lab")
def test_what_cannot_work_is_named(case):
    assert "\n" not in case.hold(refusal(checked, NEAR | yaml.safe_load(case)))


@pytest.mark.parametrize("delay_ms", [10, 50, 125, 265])
def test_the_queue_and_the_gateways_follow_the_delay_of_gateway_bulk(delay_ms):
    chosen = [f"sweep.delay=[{delay_ms} ms]", "sweep.path=[split]", "sweep.ber=[0]", "sweep.size=[10 kB]", "repeats=1"]
    (cell,) = scenario.cells(scenario.load("links/gateway-bulk", chosen))
    plan = planning.plan(cell)
    assert {service.rtt_ns for service in plan.cell.services} == {2 * delay_ms * 10**6}
    hop = next(link for link in plan.network.links if link.name == "hop")
    for direction, rate_bps in zip(hop.directions, (10_000_000, 1_000_000), strict=True):
        product = rate_bps * 2 * delay_ms // 8000
        assert direction.queue.limit_bytes == max(product, 4 * FRAMED_PACKET_BYTES)


@pytest.mark.parametrize(
    ("rate", "delay", "expected"),
    [
        # The framing of full packets is left out; the far gateway's buffers take what the fast way brings.
        ("10 Mbit/s", "265 ms", [(9_973_404, None), (997_340, 1_325_000)]),
        ("1 Mbit/s", "265 ms", [(997_340, None), (997_340, None)]),
        ("100 Mbit/s", "10 ms", [(99_734_042, None), (997_340, 500_000)]),
    ],
)
def test_rate_round_trip_and_buffers_that_are_not_stated_follow_the_path(rate, delay, expected):
    bare = [{key: value for key, value in one.items() if key not in ("rate", "rtt")} for one in (NEAR, FAR)]
    chosen = [f"links.hop.forward.rate={rate}", f"links.hop.*.delay={delay}", "sweep.path=[split]"]
    (cell,) = scenario.cells(scenario.load("links/gateway:test", [*chosen, f"services={json.dumps(bare)}"]))
    found = planning.plan(cell).cell.services
    assert [(service.rate_bps, service.buffer_bytes) for service in found] == expected


@golden.each("gateway on another path")
def test_a_stated_value_that_the_path_has_not_is_doubted(case):
    chosen = [one for one in case.split(" + ") if one != "as it is"] + ["sweep.path=[split]"]
    cells = scenario.cells(scenario.load("links/gateway:test", [*chosen, f"services={json.dumps([NEAR])}"]))
    doubts = planning.doubts(cells, {cell.id: planning.plan(cell) for cell in cells})
    case.hold("\n".join(doubts) or "no doubt")
