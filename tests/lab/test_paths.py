"""Paths as plans foretell them, and as packets take them: counted link by link, and asked of the routers."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scpslab.engine.virtual import VirtualEngine
from scpslab.plan import Plan
from scpslab.plan.flows import Flow, flow
from scpslab.plan.nodes import Router, Switch
from scpslab.plan.topology.routes import addresses
from scpslab.scenario import topologies
from tests.lab.forks import plans_of_file
from tests.lab.guest_machine import HostInGuest
from tests.lab.ran import Cell, run_plan, whole

ECHOES = 20
HEAD = "topology: {}\nlimits: {{lab_time: 600 s}}\n"
Planned = Callable[[str], Plan]


@pytest.fixture
def planned(tmp_path: Path) -> Planned:
    """The plan of the only cell of a scenario."""

    def made(text: str) -> Plan:
        (path := tmp_path / "mine.yaml").write_text(whole(text))
        (plan,) = plans_of_file(path).values()
        return plan

    return made


def flows() -> list[tuple[str, str, str]]:
    """Each topology with its source, and with every address of its sink."""
    ends = []
    for name in topologies.names():
        module = topologies.module(name)
        network = module.describe(module.PARAMETERS.read({}))
        # Over routers of SCPS-NP no echo comes back: tests of SCPS-NP have their own counts.
        if all(node.kind != "scps-router" for node in network.nodes):
            sinks = [address.name for address in addresses(network) if address.node == network.roles["sink"]]
            ends += [(name, network.roles["source"], sink) for sink in sinks]
    return ends


def counted(cell: Cell) -> Counter[tuple[str, str]]:
    """Packets offered to each direction of each link but those from switches, which flood and copy."""
    network = cell.plan.network
    switches = {node.name for node in network.nodes if isinstance(node, Switch)}
    ways = {(link.name, way.name): way.from_ for link in network.links for way in link.directions}
    counts = {(line["link"], line["direction"]): int(line["offered_packets"]) for line in cell.records("accounting")}
    for link in network.serial_links:
        lines = cell.lines(link.name, event="direction")
        counts |= {(link.name, line["direction"]): int(line["sent_frames"]) for line in lines}
    return Counter({place: number for place, number in counts.items() if ways.get(place) not in switches})


def carrying(cell: Cell) -> set[str]:
    """The directions of the two ways to home that carried anything."""
    return {f"{link}.{way}" for (link, way), number in counted(cell).items() if number and link in ("sat", "phone")}


def taken(hops: list[Any]) -> Counter[tuple[str, str]]:
    """How often hops lead over each direction."""
    return Counter((hop.link.name, hop.direction.name) for hop in hops)


def asked(found: Flow, plan: Plan) -> list[str]:
    """The routers on the way, in their order: what traceroute would list."""
    routers = {node.name for node in plan.network.nodes if isinstance(node, Router)}
    return [hop.direction.to for hop in found.there if hop.direction.to in routers]


@pytest.mark.parametrize(("topology", "source", "sink"), flows(), ids=str)
def test_packets_take_the_path_that_the_plan_foretells(
    planned: Planned, engine: VirtualEngine, tmp_path: Path, topology: str, source: str, sink: str
) -> None:
    """Links on the path carry every echo each way, no other any; each router answers when the time to live ends."""
    echo = f"{{kind: ping, name: echo, from: {source}, to: {sink}, count: {ECHOES}, interval: 100 ms}}"
    text = HEAD.format(topology) + f"workloads: [{echo}]\n"
    draft = planned(text)
    path = flow(draft.network.paths, draft.cell.workloads[0])
    routers = asked(path, draft)
    command = f"ping -n -c 1 -W 4 {path.to_ip} -t"
    steps = [
        f"  - {{at: {20 + 5 * number} s, node: {source}, command: {command} {number}, expect: 1}}\n"
        for number in range(1, len(routers) + 1)
    ]
    plan = planned(text + ("events:\n" + "".join(steps) if steps else ""))
    cell = run_plan(engine, plan, tmp_path / "cell").completed

    assert cell.line("echo", event="summary")["received"] == ECHOES
    owners = {end.ip.split("/")[0]: end.node for link in plan.network.all_links for end in link.ends if end.ip}
    logs = [cell.log(f"events-{number}-{source}") for number in range(1, len(routers) + 1)]
    answers = [re.search(r"From ([\d.]+) icmp_seq=1 Time to live exceeded", log) for log in logs]
    assert [answer and owners[answer[1]] for answer in answers] == routers
    assert path.back is not None
    wanted = taken([*path.there, *path.back])
    # The probes of the routers are on a part of the path as well.
    extra = 2 * len(routers)
    counts = counted(cell)
    assert {
        place: number
        for place, number in counts.items()
        if not ECHOES * wanted[place] <= number <= ECHOES * wanted[place] + extra
    } == {}


BULK = "workloads:\n  - {{kind: bulk, name: transfer, from: {}, to: {}, size: 100 kB, timeout: 300 s}}\n"
SCPS = "hosts: {server: {stack: scps, preset: modern}, home: {stack: scps, preset: modern}}\n"
DATAGRAMS = (
    "workloads:\n  - {kind: iperf3, name: transfer, from: server, to: home.phone, duration: 5 s, udp_rate: "
    "16 kbit/s, segment: 500 B}\n"
)
DATA_BY_SATELLITE, ALL_BY_PHONE = ("sat.forward", "phone.return"), ("phone.forward", "phone.return")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (BULK.format("server", "home.sat"), DATA_BY_SATELLITE),
        (BULK.format("server", "home.sat") + SCPS, DATA_BY_SATELLITE),
        (BULK.format("server", "home.phone") + SCPS, ALL_BY_PHONE),
        # home sends by telephone, and says that it is to be answered by satellite.
        (BULK.format("home.sat", "server"), DATA_BY_SATELLITE),
        (BULK.format("home.sat", "server") + SCPS, DATA_BY_SATELLITE),
        (BULK.format("server", "home.sat") + "routes: {home: {server: sat}}\n", ("sat.forward", "sat.return")),
        # Control connection and datagrams: the server answers from the address that was asked.
        (DATAGRAMS, ALL_BY_PHONE),
    ],
    ids=["kernel", "scps", "scps-phone", "upload", "scps-upload", "routes", "datagrams"],
)
def test_only_the_named_links_carry_anything(
    planned: Planned, engine: VirtualEngine, tmp_path: Path, text: str, wanted: tuple[str, str]
) -> None:
    cell = run_plan(engine, planned(HEAD.format("one_way_satellite") + text), tmp_path / "cell").completed

    path = flow(cell.plan.network.paths, cell.plan.cell.workloads[0])
    assert path.back is not None
    foretold = {f"{link}.{way}" for link, way in taken([*path.there, *path.back]) if link in ("sat", "phone")}
    assert carrying(cell) == set(wanted) == foretold


def test_engine_host_takes_the_same_paths_on_a_machine_that_filters_by_them(planned: Planned, tmp_path: Path) -> None:
    """home's packets to `sat` come by another link than the answers take; a strict machine would drop them all."""
    text = HEAD.format("one_way_satellite") + BULK.format("server", "home.sat").replace("timeout: 300", "timeout: 30")
    # Paths are what is looked at, on a machine that may have other work: how late the lab is does not matter.
    plan = planned(text.replace("lab_time: 600 s", "lab_time: 600 s, lateness: 5 s"))
    cell = run_plan(HostInGuest(), plan, tmp_path / "cell").completed

    assert carrying(cell) == set(DATA_BY_SATELLITE)
