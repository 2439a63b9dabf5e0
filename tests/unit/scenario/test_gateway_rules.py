"""Services of kind gateway that could not start, or would never get a packet, are refused with the file."""

import json

import pytest
import yaml

from scpslab import scenario
from scpslab.plan.disciplines import FRAMED_PACKET_BYTES
from scpslab.scenario import planning
from tests.cases import each, refusal

NEAR = {"kind": "gateway", "name": "near", "node": "g1", "peer": "10.9.0.2", "far": ["10.2.0.0/24"]}
NEAR |= {"rate": "2 Mbit/s", "rtt": "1 s"}
FAR = NEAR | {"name": "far", "node": "g2", "peer": "10.9.0.1", "far": ["10.1.0.0/24"]}


def checked(*services):
    chosen = ["sweep.path=[cubic]", f"services={json.dumps(services)}"]
    return scenario.cells(scenario.load("links/gateway:test", chosen))


def test_a_pair_is_taken_and_a_second_gateway_of_a_router_is_not():
    assert len(checked(NEAR, FAR)) == 1
    assert "found a second gateway on g1; expected one" in refusal(checked, NEAR, NEAR | {"name": "again"})


@each(
    "changes words",
    """
node: client | found "client"; expected one of g1, g2
node: lan1 | found "lan1"; expected one of g1, g2
name: lab | found the name "lab", which another record has
name: accounting | found the name "accounting", which another record has
name: transfer | found the name "transfer", which a workload or another service has
peer: g2 | found "g2"; expected the address of another node, such as 10.
peer: 10.9.0.1 | found "10.9.0.1"; expected the address of another node
peer: 255.255.255.255 | found "255.255.255.255"; expected the address of another node
far: [] | found no network; expected those behind the other gateway
far: ["fd00::/64"] | found "fd00::/64"; expected an IPv4 network whose host bits are 0
far: [10.2.0.1/24] | found "10.2.0.1/24"; expected an IPv4 network whose host bits are 0
mtu: 20 B | found "20 B"; expected 576 to 65535 B
mtu: 100000 B | found "100000 B"; expected 576 to 65535 B
""",
)
def test_what_cannot_work_is_named(changes, words):
    said = refusal(checked, NEAR | yaml.safe_load(changes))
    assert words in said
    assert len(said.splitlines()) == 1


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
