"""Hosts and routers that speak SCPS-NP in plans: addresses, next hops, interfaces, files, and what does not fit."""

import ipaddress
import json
from pathlib import Path

import pytest
import yaml

from scpslab import scenario
from scpslab.lab.scps_end import end_file
from scpslab.plan import PlanError, parse, text, write
from scpslab.scenario import planning
from tests import golden
from tests.cases import changed, refusal

from scpslab.kinds.services.np_router.lab import router_file

NP_LANS = Path(__file__).parents[2] / "data/np-lans/np-lans.yaml"
BASE = """kind: scenario
version: 1
title: NP
topology: fy97_np
hosts:
  ws1: {stack: scps, network: np}
  ws2: {stack: scps, network: np}
workloads:
- {kind: bulk, name: transfer, from: ws1, to: ws2, size: 400 kB, precedence: 9}
- {kind: bulk, name: other, from: ws1, to: ws2, port: 5002, size: 400 kB}
"""


@pytest.fixture
def planned(planned):
    """Plans the scenario with words replaced."""
    return lambda *changes: planned(changed(BASE, *changes))


def router(plan, name):
    return next(service for service in plan.cell.services if service.node == name)


def test_every_program_and_router_has_an_even_address_that_everybody_knows(planned):
    plan = planned()
    first, second = (workload.from_scps for workload in plan.cell.workloads)
    tables = {first.np.hosts, second.np.hosts, router(plan, "ws5").hosts, router(plan, "ws6").hosts}
    (table,) = tables
    assert [(host.ip, host.np) for host in table] == [
        *(("198.18.1.1", "0102"), ("198.18.1.2", "0104"), ("198.18.2.1", "0202"), ("198.18.2.2", "0204")),
        *(("198.18.3.1", "0302"), ("198.18.4.1", "0402")),
    ]
    assert all(int(host.np, 16) % 2 == 0 for host in table)
    assert {first.ip, second.ip} == {"198.18.1.1", "198.18.1.2"}


def test_settings_of_routers_and_levels_of_hosts_reach_the_plan(planned):
    router_s = "{queue_limit: 50, queue_purge: 10, discard: newest, default_precedence: 3}"
    level = ("ws1: {stack: scps, network: np}", "ws1: {stack: scps, network: np, default_precedence: 4}")
    plan = planned(("hosts:", f"routers:\n  ws5: {router_s}\nhosts:"), level)
    assert {interface.queue.rule for interface in router(plan, "ws5").interfaces} == {"newest"}
    assert (router(plan, "ws5").default_precedence, router(plan, "ws6").default_precedence) == (3, 0)
    first, second = plan.cell.workloads
    assert (first.from_scps.settings["precedence"], "precedence" in second.from_scps.settings) == (9, False)
    assert (first.from_scps.np.default_precedence, first.to_scps.np.default_precedence) == (4, 0)


def test_what_an_interface_carries_of_sp_is_in_the_plan_only_if_it_is_not_everything(planned):
    routers = "routers:\n  ws5: {sp: {modem: required, lan: accepted}}\n  ws6: {sp: {lan: none}}\n"
    plan = planned(("hosts:", f"{routers}hosts:"))
    rules = {name: [interface.sp for interface in router(plan, name).interfaces] for name in ("ws5", "ws6")}
    assert rules == {"ws5": [None, "required"], "ws6": ["none", None]}
    made = router_file(router(plan, "ws5"), {"modem": "/dev/pts/3"})
    assert [interface.get("sp") for interface in made["interfaces"]] == [None, "required"]
    assert '"sp"' not in text(planned())


def test_routers_on_a_serial_line_can_be_containers(planned):
    plan = planned(("hosts:", "containers: docker\nhosts:"))
    container = next(node.container for node in plan.network.nodes if node.name == "ws5")
    assert (container.capabilities, container.devices) == (("NET_ADMIN",), ("/dev/net/tun",))


def test_the_plan_is_read_as_it_was_written(planned):
    plan = planned()
    assert parse(text(plan).encode()) == plan
    over_ip = planning.plan(scenario.cells(scenario.load("fy97/fig04:test"))[0])
    assert "np" not in write(over_ip)["cell"]["workloads"][0]


@pytest.mark.parametrize("name", ["ws5", "ws6", "ws1"])
def test_settings_files_are_what_the_program_reads(planned, name):
    """Hosts send to their router, which sends over the line, at the line's rate, and then to the program."""
    plan = planned()
    if name == "ws1":
        made = end_file(plan.cell.workloads[0].from_scps.np)
    else:
        made = router_file(router(plan, name), {"modem": "/dev/pts/3"})
    text = yaml.safe_dump(json.loads(json.dumps(made)), default_flow_style=None, sort_keys=False, width=110)
    golden.Case("settings of programs of SCPS-NP", name).hold(text)


def test_rate_control_alone_fills_the_line_with_nps_header_and_framing(planned):
    """1400 bytes, 20 of TCP, 12 of timestamps and 12 of NP; 4 of framing and two in 256 escaped on the line."""
    plan = planned(("ws1: {stack: scps, network: np}", "ws1: {stack: scps, network: np, preset: fy97-rate}"))
    packet = 1400 + 20 + 12 + 12
    assert plan.cell.workloads[0].from_scps.settings["rate"] == str(2_000_000 * packet // (packet + 4 + 12))


@golden.each("SCPS-NP", "case old new")
def test_what_does_not_fit_is_named(case, planned, old, new, tmp_path):
    case.hold(refusal(planned, (old, new)), tmp_path)


def test_hosts_that_speak_ip_cannot_cross_a_router_of_np_and_levels_may_be_left_out(planned):
    planned((", precedence: 9", ""))
    said = refusal(planned, (", network: np", ""), (", precedence: 9", ""))
    assert "found no SCPS-NP on ws1 and ws2, which a router of SCPS-NP joins" in said


def test_a_router_whose_next_hop_is_behind_no_interface_is_refused(planned):
    words = json.loads(text(planned()))
    ws5 = next(service for service in words["cell"]["services"] if service["node"] == "ws5")
    ws5["interfaces"] = ws5["interfaces"][:1]
    said = refusal(parse, json.dumps(words).encode(), error=ValueError)
    assert "next_hops: found 0.0.0.1; expected a neighbour" in said
    ws5["interfaces"][0]["line"] = "other"
    assert 'line: found "other"' in refusal(parse, json.dumps(words).encode(), error=ValueError)


def test_a_host_on_every_lan_of_a_router_has_a_route_to_its_program():
    """The router's first address is on the first LAN, to which the second LAN's host has no route."""
    (cell,) = scenario.cells(scenario.load(str(NP_LANS)))
    plan = planning.plan(cell)
    program = ipaddress.ip_network(f"{router(plan, 'r').ip}/24", strict=False)
    vias = {node.name: [route.via for route in node.routes if route.to == str(program)] for node in plan.network.nodes}
    assert vias == {"a": ["10.1.0.2"], "b": ["10.2.0.1"], "r": [None]}


@pytest.mark.parametrize(("layer", "programs", "fits"), [("np", 127, True), ("np", 128, False), ("ip", 260, False)])
def test_more_programs_than_have_addresses_are_refused(scpslab, tmp_path, layer, programs, fits):
    workloads = "".join(
        f"- {{kind: bulk, name: t{port}, from: h1, to: h2, size: 1 kB, port: {port}}}\n"
        for port in range(5001, 5001 + programs)
    )
    hosts = "hosts: {h1: {stack: scps, network: LAYER}, h2: {stack: scps, network: LAYER}}".replace("LAYER", layer)
    path = tmp_path / "many.yaml"
    path.write_text(f"kind: scenario\nversion: 1\ntopology: point_to_point\n{hosts}\nworkloads:\n{workloads}")
    code, out, said = scpslab("validate", path)
    assert (
        code,
        f"found {programs} transfers at h1, each with a SCPS program there; expected at most 127" in said,
    ) == (
        0 if fits else 2,
        not fits,
    ), out


@pytest.mark.parametrize("key", ["ip", "np"])
def test_a_plan_with_one_address_of_scps_np_twice_is_refused(planned, key):
    data = json.loads(text(planned()))
    hosts = data["cell"]["workloads"][1]["from_scps"]["np"]["hosts"]
    hosts[1][key] = hosts[0][key]
    said = refusal(parse, json.dumps(data).encode(), error=PlanError)
    assert (
        f'cell.workloads[1].from_scps.np.hosts[1]: found "{hosts[0][key]}" twice; expected an address of its own'
        in said
    )
