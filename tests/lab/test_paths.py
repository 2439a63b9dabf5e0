"""Paths as plans foretell them, and as packets take them: counted link by link, and asked of the routers with times to
live that run out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scpslab import scenario
from scpslab.engine import CellRun
from scpslab.engine.virtual import VirtualEngine
from scpslab.plan import Plan
from scpslab.plan.nodes import Router, Switch
from scpslab.plan.paths import Flow, Paths, flow
from scpslab.plan.topology import catalogue
from scpslab.plan.topology.routes import addresses
from scpslab.scenario import planning
from scpslab.setup import silent
from tests.lab.conftest import Outcome
from tests.lab.guest_machine import HostInGuest

pytestmark = pytest.mark.lab
ECHOES = 20
HEAD = "kind: scenario\nversion: 1\ntitle: Paths\ntopology: {}\nlimits: {{virtual: 600 s}}\n"

Run = Callable[[Plan], Outcome]
Planned = Callable[[str], Plan]


@pytest.fixture
def planned(tmp_path: Path) -> Planned:
    """The plan of the only cell of a scenario."""

    def made(text: str) -> Plan:
        (path := tmp_path / "mine.yaml").write_text(text)
        (cell,) = scenario.cells(scenario.load(str(path)))
        return planning.plan(cell)

    return made


@pytest.fixture
def run(engine: VirtualEngine, tmp_path: Path) -> Run:
    """Runs a plan."""

    def ran(plan: Plan) -> Outcome:
        engine.prepare(silent, [plan])
        return Outcome(tmp_path / "cell", engine.run(CellRun(plan, tmp_path / "cell")))

    return ran


def flows() -> list[tuple[str, str, str]]:
    """Each topology with its source, and with every address of its sink."""
    found = []
    for name in catalogue.names():
        module = catalogue.module(name)
        network = module.describe(module.PARAMETERS.read({}))
        # Over routers of SCPS-NP no echo comes back: tests of SCPS-NP have their own counts.
        if all(node.kind != "scps-router" for node in network.nodes):
            found += [
                (name, network.roles["source"], one.name)
                for one in addresses(network)
                if one.node == network.roles["sink"]
            ]
    return found


def counted(plan: Plan, outcome: Outcome) -> Counter[tuple[str, str]]:
    """Packets that each direction of each link was offered.

    A switch floods what it has not learned, and copies for monitors: its own count is left out.
    """
    switches = {node.name for node in plan.network.nodes if isinstance(node, Switch)}
    flooded = {
        (link.name, direction.name)
        for link in plan.network.links
        for direction in link.directions
        if direction.from_ in switches
    }
    found = Counter(
        {(line["link"], line["direction"]): int(line["offered_packets"]) for line in outcome.records("accounting")}
    )
    for link in plan.network.serial_links:
        lines = (line for line in outcome.records(link.name) if line["event"] == "direction")
        found.update({(link.name, line["direction"]): int(line["sent_frames"]) for line in lines})
    return Counter({place: number for place, number in found.items() if place not in flooded})


def taken(hops: list[Any]) -> Counter[tuple[str, str]]:
    """How often hops lead over each direction."""
    return Counter((hop.link.name, hop.direction.name) for hop in hops)


def asked(found: Flow, plan: Plan) -> list[str]:
    """The routers on the way, in their order: what traceroute would list."""
    routers = {node.name for node in plan.network.nodes if isinstance(node, Router)}
    return [hop.direction.to for hop in found.there if hop.direction.to in routers]


@pytest.mark.parametrize(("topology", "source", "sink"), flows(), ids=str)
def test_packets_take_the_path_that_the_plan_foretells(
    planned: Planned, run: Run, topology: str, source: str, sink: str
) -> None:
    """Every link on the path carries every echo each way, no other link any; each router answers when the time to live
    ends at it.
    """
    text = (
        HEAD.format(topology)
        + f"workloads:\n  - {{kind: ping, name: echo, from: {source}, to: {sink}, count: {ECHOES}, interval: 100 ms}}\n"
    )
    draft = planned(text)
    found = flow(Paths(draft.network), draft.cell.workloads[0])
    routers = asked(found, draft)
    command = "ping -n -c 1 -W 4 -t {} " + found.to_ip
    steps = [
        f"  - {{do: run, at: {20 + 5 * number} s, node: {source}, command: {command.format(number)}}}\n"
        for number in range(1, len(routers) + 1)
    ]
    plan = planned(text + ("script:\n" + "".join(steps) if steps else ""))
    outcome = run(plan)

    assert outcome.status["status"] == "completed"
    (summary,) = (line for line in outcome.records("echo") if line.get("event") == "summary")
    assert summary["received"] == ECHOES
    owners = {end.ip.split("/")[0]: end.node for link in plan.network.all_links for end in link.ends if end.ip}
    logs = [
        (outcome.folder / "logs" / f"script-{number}-{source}.log").read_text() for number in range(1, len(routers) + 1)
    ]
    answers = [re.search(r"From ([\d.]+) icmp_seq=1 Time to live exceeded", log) for log in logs]
    assert [answer and owners[answer[1]] for answer in answers] == routers
    assert found.back is not None
    wanted = taken([*found.there, *found.back])
    for place, number in counted(plan, outcome).items():
        # The probes of the routers are on a part of the path as well.
        assert ECHOES * wanted[place] <= number <= ECHOES * wanted[place] + 2 * len(routers), (
            place,
            number,
            wanted[place],
        )


BULK = "workloads:\n  - {{kind: bulk, name: transfer, from: {}, to: {}, size: 100 kB, patience: 300 s}}\n"
SCPS = "hosts: {server: {stack: scps, preset: modern}, home: {stack: scps, preset: modern}}\n"
DATAGRAMS = (
    "workloads:\n  - {kind: iperf3, name: transfer, from: server, to: home.phone, duration: 5 s, udp_rate: "
    "16 kbit/s, segment: 500 B}\n"
)
DATA_BY_SATELLITE, ALL_BY_PHONE = ("sat.data", "phone.ack"), ("phone.data", "phone.ack")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (BULK.format("server", "home.sat"), DATA_BY_SATELLITE),
        (BULK.format("server", "home.sat") + SCPS, DATA_BY_SATELLITE),
        (BULK.format("server", "home.phone") + SCPS, ALL_BY_PHONE),
        # home sends by telephone, and says that it is to be answered by satellite.
        (BULK.format("home.sat", "server"), DATA_BY_SATELLITE),
        (BULK.format("home.sat", "server") + SCPS, DATA_BY_SATELLITE),
        (BULK.format("server", "home.sat") + "routes: {home: {server: sat}}\n", ("sat.data", "sat.unused")),
        # Control connection and datagrams: the server answers from the address that was asked.
        (DATAGRAMS, ALL_BY_PHONE),
    ],
    ids=["kernel", "scps", "scps-phone", "upload", "scps-upload", "routes", "datagrams"],
)
def test_only_the_named_links_carry_anything(planned: Planned, run: Run, text: str, wanted: tuple[str, str]) -> None:
    plan = planned(HEAD.format("one_way_satellite") + text)
    outcome = run(plan)

    assert outcome.status["status"] == "completed"
    carried = {
        f"{link}.{direction}"
        for (link, direction), number in counted(plan, outcome).items()
        if number and link in ("sat", "phone")
    }
    found = flow(Paths(plan.network), plan.cell.workloads[0])
    assert found.back is not None
    assert (
        carried
        == set(wanted)
        == {f"{link}.{direction}" for link, direction in taken([*found.there, *found.back]) if link in ("sat", "phone")}
    )


def test_engine_host_takes_the_same_paths_on_a_machine_that_filters_by_them(planned: Planned, tmp_path: Path) -> None:
    """home's packets to its address on `sat` come by another link than the answers take; a strict machine would drop
    them all.
    """
    text = HEAD.format("one_way_satellite") + BULK.format("server", "home.sat")
    # Paths are what is looked at, on a machine that may have other work: how late the lab is does not matter.
    plan = planned(
        text.replace("virtual: 600 s", "virtual: 600 s, lateness: 5 s").replace("patience: 300 s", "patience: 30 s")
    )
    engine = HostInGuest()
    engine.prepare(silent, [plan])
    outcome = Outcome(tmp_path / "cell", engine.run(CellRun(plan, tmp_path / "cell")))

    assert outcome.status["status"] == "completed"
    assert {
        f"{link}.{direction}"
        for (link, direction), number in counted(plan, outcome).items()
        if number and link in ("sat", "phone")
    } == set(DATA_BY_SATELLITE)
