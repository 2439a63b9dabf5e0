"""Properties of links: queues of one bandwidth-delay product follow rate and delays, however these are set; former
parameters and former names of directions keep their meaning.
"""

import json
from operator import attrgetter

import pytest

from scpslab import scenario
from scpslab.core.seeds import stream
from scpslab.plan.disciplines import FRAMED_PACKET_BYTES
from scpslab.plan.topology import Parameters, catalogue, moved, size
from scpslab.scenario import planning
from scpslab.scenario.recorded import Recorded
from tests.cases import each, refusal

SCENARIO = """\
kind: scenario
version: 1
title: A transfer
topology: {topology}
workloads: [{{kind: bulk, name: transfer, from: {source}, to: {sink}, size: 100 kB}}]
"""
OWN = """\
from scpslab.topology import Direction, Network, OneProduct, Parameters, count

PARAMETERS = Parameters(hops=count(1, "hops"))


def describe(p):
    net = Network("own")
    net.host("h1")
    net.host("h2")
    net.switch("sat")
    hop = Direction("up", 8_000_000, 0, OneProduct(), 100_000_000)
    net.link("h1", "h2", name="hop", via="sat", a_ip="10.0.0.1/30", b_ip="10.0.0.2/30", forward=hop)
    return net
"""
LEAST = 4 * FRAMED_PACKET_BYTES
GATEWAY = SCENARIO.format(topology="gateway", source="client", sink="server")


def limits(cell):
    hop = next(link for link in planning.plan(cell).network.links if link.name == "hop")
    return [direction.queue and direction.queue.limit_bytes for direction in hop.directions]


@pytest.mark.parametrize(
    ("set_", "expected"),
    [
        ((), [662_500, 66_250]),
        (("links.hop.*.delay=10 ms",), [25_000, LEAST]),
        (("links.hop.*.rate=2 Mbit/s",), [132_500, 132_500]),
        (("links.hop.*.delay_table=[{at: 0 s, delay: 10 ms}, {at: 9 s, delay: 1 s}]",), [25_000, LEAST]),
        # A change later on is an event.
        (("links.hop.*.delay_table=[{at: 9 s, delay: 1 s}]",), [662_500, 66_250]),
        (("links.hop.*.delay=10 ms", "links.hop.*.queue.limit=64 kB"), [64_000, 64_000]),
        (("links.hop.*.delay=10 ms", "links.hop.*.queue.limit=9 packets"), [None, None]),
        (("links.hop.*.delay=100 ms", "links.hop.*.queue={discipline: codel, codel_target: 90 ms}"), [250_000, 25_000]),
    ],
)
def test_the_limit_is_one_product_of_what_the_link_has_unless_it_is_stated(cells, set_, expected):
    (cell,) = cells(GATEWAY, *set_)
    assert limits(cell) == expected


def test_a_sweep_of_the_delay_moves_it(cells):
    found = cells(f"{GATEWAY}sweep: {{delay: {{set: [links.hop.*.delay], values: [50 ms, 250 ms]}}}}\n")
    assert [limits(cell)[0] for cell in found] == [125_000, 625_000]


def test_that_of_an_own_topology_follows_from_its_record_too(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    path = tmp_path / "own.yaml"
    path.write_text(SCENARIO.format(topology="./own.py", source="h1", sink="h2"))
    loaded = scenario.load(str(path), ["links.hop.up.rate=1 Mbit/s"])
    own = scenario.own_files(loaded, scenario.cells(loaded))
    again = scenario.load(str(path), ["links.hop.up.rate=1 Mbit/s"], Recorded(own.contents["topologies.json"]))
    assert again.network == loaded.network
    for one in (loaded, again):
        (cell,) = scenario.cells(one)
        assert limits(cell)[0] == 12_500


FORMER = """
data_rate=9600 bit/s | rate_bps | 9600, 1000000
ack_delay=1 ms | delay_ns | 265000000, 1000000
framing=7 B | overhead_bytes | 7, 7
data_buffer=9 kB | queue.limit_bytes | 9000, 64375
"""


@each("said field expected", FORMER)
def test_a_former_parameter_is_put_on_its_link(cells, said, field, expected):
    (cell,) = cells(GATEWAY, f"parameters.{said}", *(["links.hop.return.delay=250 ms"] if "9 kB" in said else []))
    hop = next(link for link in planning.plan(cell).network.links if link.name == "hop")
    assert [attrgetter(field)(direction) for direction in hop.directions] == json.loads(f"[{expected}]")


def test_what_a_scenario_says_of_the_link_wins_and_a_wrong_value_is_named(cells):
    (cell,) = cells(GATEWAY, "parameters.data_rate=9600 bit/s", "links.hop.forward.rate=2 Mbit/s")
    assert limits(cell)[0] == 132_500
    said = refusal(cells, GATEWAY, "parameters.data_rate=fast")
    assert 'links.hop.forward.rate: found "fast"' in said


def test_mininets_own_command_line_reads_former_parameters():
    module = catalogue.module("gateway")
    network = module.PARAMETERS.described(module.describe, {"data_rate": "9600 bit/s"}).plan()
    assert [one.rate_bps for one in network.links[2].directions] == [9600, 1_000_000]


def test_a_former_parameter_must_name_a_link_of_its_topology():
    wrong = Parameters(mtu=size("1500 B", "IP MTU"), rate=moved("hip.forward.rate"))
    with pytest.raises(ValueError, match=r"found the place hip.forward.rate; expected a link and a direction"):
        wrong.described(catalogue.module("point_to_point").describe, {"rate": "1 Mbit/s"})


def test_a_former_parameter_of_an_own_topology_must_name_a_link_of_it(tmp_path):
    own = OWN.replace("count(1", 'moved("hip.up.rate"), more=count(1').replace("count\n", "count, moved\n")
    (tmp_path / "own.py").write_text(own)
    (tmp_path / "own.yaml").write_text(SCENARIO.format(topology="./own.py", source="h1", sink="h2"))
    said = refusal(scenario.load, str(tmp_path / "own.yaml"), ["parameters.hops=1 Mbit/s"])
    assert 'found "hip"; expected one of hop' in said


def test_random_streams_know_directions_by_their_former_names(cells):
    errors = "links.hop.forward.errors={model: independent, ber: 1e-5}", "links.hop.forward.jitter=1 ms"
    step = "script=[{at: 2 s, link: hop, ber: 1e-6}]"
    (cell,) = cells(GATEWAY, *errors, step)
    plan = planning.plan(cell)
    (impairment,) = plan.cell.impairments
    assert impairment.errors.seed == stream(1, "errors", "hop", "data", "independent", '{"ber": 1e-05}', 1)
    assert impairment.seed == stream(1, "disorder", "hop", "data", 1)
    assert plan.cell.events[0].seeds == (stream(1, "script", 0, "data", 1), stream(1, "script", 0, "ack", 1))
