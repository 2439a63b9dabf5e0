"""Properties of links: queues of one bandwidth-delay product follow rate and delays, however these are set; random
streams keep the names with which they began.
"""

import pytest

from scpslab import scenario
from scpslab.core.seeds import stream
from scpslab.plan.disciplines import FRAMED_PACKET_BYTES
from scpslab.scenario import planning
from scpslab.scenario.recorded import Recorded
from tests.cases import refusal

SCENARIO = """\
kind: scenario
version: 1
title: A transfer
topology: {topology}
workloads: [{{kind: bulk, name: transfer, from: {source}, to: {sink}, size: 100 kB}}]
"""
OWN = """\
from tests.cases import refusal
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
        (("links.hop.*.queue.limit=0.25 BDP",), [165_625, 16_562]),
        # The number that is said, where the topology would have four packets at least.
        (("links.hop.*.delay=10 ms", "links.hop.*.queue.limit=1 BDP"), [25_000, 2_500]),
        (("links.hop.*.queue={discipline: ack-filter, limit: 4 BDP}",), [2_650_000, 265_000]),
        (("links.hop.*.delay=100 ms", "links.hop.*.queue={discipline: codel, codel_target: 90 ms}"), [250_000, 25_000]),
    ],
)
def test_the_limit_is_one_product_of_what_the_link_has_unless_it_is_stated(cells, set_, expected):
    (cell,) = cells(GATEWAY, *set_)
    assert limits(cell) == expected


def test_a_sweep_of_the_delay_moves_it(cells):
    found = cells(f"{GATEWAY}sweep: {{delay: {{set: [links.hop.*.delay], values: [50 ms, 250 ms]}}}}\n")
    assert [limits(cell)[0] for cell in found] == [125_000, 625_000]


def test_products_can_be_swept_and_give_red_its_thresholds(cells):
    axis = "queue: {set: [links.hop.forward.queue.limit], values: [0.5 BDP, 1 BDP]}"
    found = cells(f"{GATEWAY}sweep: {{{axis}}}\n", "links.hop.forward.queue.discipline=red")
    assert [cell.id for cell in found] == ["queue=0.5BDP,r1", "queue=1BDP,r1"]
    queues = [planning.plan(cell).network.links[2].directions[0].queue for cell in found]
    assert refusal(cells, GATEWAY, "links.lan2.*.delay=0 s", "links.lan2.forward.queue.limit=1 BDP").endswith(
        'found "1 BDP" on a link without delay; expected bytes or packets. Say one of them.'
    )
    assert [(one.limit_bytes, one.settings.min_bytes) for one in queues] == [(331_250, 82_812), (662_500, 165_625)]


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


def test_random_streams_know_directions_by_the_names_with_which_they_began(cells):
    errors = "links.hop.forward.errors={model: independent, ber: 1e-5}", "links.hop.forward.jitter=1 ms"
    step = "events=[{at: 2 s, link: hop, ber: 1e-6}]"
    (cell,) = cells(GATEWAY, *errors, step)
    plan = planning.plan(cell)
    (impairment,) = plan.cell.impairments
    assert impairment.errors.seed == stream(1, "errors", "hop", "data", "independent", '{"ber": 1e-05}', 1)
    assert impairment.seed == stream(1, "disorder", "hop", "data", 1)
    assert plan.cell.events[0].seeds == (stream(1, "script", 0, "data", 1), stream(1, "script", 0, "ack", 1))
