"""Ends of workloads that name a link: what plans say of them, and what people are told of their paths. Routes of a
topology: in words of nodes and links, each direction for itself.
"""

import re

import pytest

from scpslab.plan import read, write
from scpslab.plan.flows import flow
from scpslab.plan.schema import PlanError
from scpslab.plan.topology import Network
from scpslab.scenario import planning
from tests import golden
from tests.cases import refusal

HEAD = "kind: scenario\nversion: 1\ntitle: T\ntopology: one_way_satellite\nworkloads:\n"
TRANSFER = "  - {kind: bulk, name: transfer, from: server, to: home.sat, size: 20 kB}\n"
SATELLITE, PHONE = "10.8.0.2", "10.9.0.2"


@pytest.fixture
def cells(cells):
    """The cells of a scenario on the topology with a satellite one way."""
    return lambda workloads=TRANSFER, rest="", overrides=(): cells(HEAD + workloads + rest, *overrides)


def links(hops):
    """Names of links."""
    return [hop.link.name for hop in hops]


def first_flow(cell, number=0):
    """The flow of one of a cell's workloads."""
    planned = planning.plan(cell)
    return flow(planned.network.paths, planned.cell.workloads[number])


def routes(planned, node):
    """A node's routes to single addresses: next hop and source."""
    (found,) = (one for one in planned.network.nodes if one.name == node)
    return {route.to.removesuffix("/32"): (route.via, route.src) for route in found.routes if route.to.endswith("/32")}


def test_a_named_link_gets_the_data_and_the_routes_get_the_acknowledgements(cells):
    (cell,) = cells()
    found = first_flow(cell)
    assert (found.from_ip, found.to_ip) == ("10.1.0.1", SATELLITE)
    assert links(found.there) == ["lan", "uplink", "sat"]
    assert links(found.back) == ["phone", "backbone", "lan"]
    # An interface's name does as well as its link's.
    assert planning.plan(*cells(overrides=["workloads.transfer.to=home.home-sat"])) == planning.plan(cell)


def test_a_host_alone_has_its_first_address_and_a_warning_says_so(cells, tmp_path):
    found = cells(overrides=["workloads.transfer.to=home"])
    assert first_flow(*found).to_ip == SATELLITE
    (warning,) = planning.open_choices(found)
    golden.Case("ends of workloads", "a host alone").hold(warning, tmp_path)
    assert planning.open_choices(cells()) == []


def test_no_warning_where_routes_leave_nothing_open(cells):
    rest = "routes: {core: {10.8.0.0/30: isp, 10.9.0.0/30: isp}, isp: {home: phone}}\n"
    found = cells(rest=rest, overrides=["workloads.transfer.to=home"])
    assert links(first_flow(*found).there) == ["lan", "backbone", "phone"]
    assert planning.open_choices(found) == []


def test_the_client_of_a_download_is_who_opens_and_its_server_is_warned_of(cells):
    """With `get` the sending host is contacted: its address is the choice."""
    download = "  - {kind: ftp, name: file, from: home, to: server, size: 1 kB}\n"
    (cell,) = cells(download)
    assert (first_flow(cell).from_ip, first_flow(cell).to_ip) == (SATELLITE, "10.1.0.1")
    (warning,) = planning.open_choices([cell])
    assert 'workloads[1].from: found "home"' in warning
    upload = "  - {kind: ftp, name: file, from: home, to: server, size: 1 kB, command: put}\n"
    assert planning.open_choices(cells(upload)) == []


@pytest.mark.parametrize("to", ["default", "server"])
def test_a_scenario_s_route_comes_before_the_topology_s(cells, to):
    assert links(first_flow(*cells(rest=f"routes: {{home: {{{to}: sat}}}}\n")).back) == ["sat", "uplink", "lan"]


SIZE = "size: 10 kB"


@pytest.mark.parametrize(
    "kind", [f"bulk, {SIZE}", f"iperf3, {SIZE}", "ping", "background, max_rate: 8 kbit/s", f"ftp, {SIZE}, command: put"]
)
def test_a_sender_s_link_is_where_answers_come_to(cells, kind):
    """Whatever the workload: the host has a route to the one address, with the source that the scenario names."""
    waits = "events: [{at: 1 s, link: sat, rate: 1 Mbit/s}]\n"
    (cell,) = cells(f"  - {{kind: {kind}, name: up, from: home.sat, to: server}}\n", waits)
    assert routes(planning.plan(cell), "home")["10.1.0.1"] == ("10.9.0.1", SATELLITE)
    found = first_flow(cell)
    assert (found.from_ip, links(found.there)) == (SATELLITE, ["phone", "backbone", "lan"])
    assert found.back is None if kind.startswith("background") else links(found.back) == ["lan", "uplink", "sat"]


def test_a_receiver_that_opens_has_the_address_it_names_and_one_that_the_kernel_takes_anyway_needs_no_route(cells):
    (cell,) = cells("  - {kind: fp, name: file, from: server, to: home.sat, size: 1 kB}\n")
    assert routes(planning.plan(cell), "home")["10.1.0.1"] == ("10.9.0.1", SATELLITE)
    assert (first_flow(cell).to_ip, links(first_flow(cell).there)) == (SATELLITE, ["lan", "uplink", "sat"])
    (cell,) = cells("  - {kind: ping, name: up, from: home.phone, to: server}\n")
    assert "10.1.0.1" not in routes(planning.plan(cell), "home")


def test_programs_of_scps_are_reached_as_the_address_that_an_end_names(cells):
    both = TRANSFER + "  - {kind: bulk, name: other, from: server, to: home.phone, size: 20 kB, port: 5005}\n"
    (cell,) = cells(both, "hosts: {home: {stack: scps}, server: {stack: scps}}\n")
    planned = planning.plan(cell)
    transfer, other = planned.cell.workloads
    assert links(first_flow(cell).there) == ["lan", "uplink", "sat"]
    assert links(first_flow(cell).back) == ["phone", "backbone", "lan"]
    assert links(first_flow(cell, 1).there) == ["lan", "backbone", "phone"]
    # The prefix of a host's programs is routed as its first address; only the other program needs a route of its own.
    assert transfer.to_ip not in routes(planned, "core")
    assert routes(planned, "core")[other.to_ip] == ("10.3.0.2", None)
    assert routes(planned, "isp")[other.to_ip] == (PHONE, None)


def test_rates_and_segments_follow_the_path(cells):
    """The rate that fills the slowest hop: the satellite's, or the telephone's."""
    rest = "hosts: {server: {stack: scps, preset: fy97-rate}}\n"
    rates = {}
    for to in ("home.sat", "home.phone"):
        (cell,) = cells(rest=rest, overrides=[f"workloads.transfer.to={to}"])
        (transfer,) = planning.plan(cell).cell.workloads
        rates[to] = int(transfer.sending_program.settings["rate"])
    assert rates == {"home.sat": 2_000_000, "home.phone": 33_600 * 1452 // 1460}


def test_a_plan_from_outside_may_send_from_its_own_addresses_only(cells, told):
    (cell,) = cells("  - {kind: ping, name: up, from: home.sat, to: server}\n")
    data = write(planning.plan(cell))
    home = next(node for node in data["network"]["nodes"] if node["name"] == "home")
    route = next(route for route in home["routes"] if route.get("src"))
    assert write(read(data)) == data
    route["src"] = "10.1.0.1"
    told("ends of workloads", "a plan from outside", read, data, error=PlanError)


def test_cells_with_the_same_paths_stand_together(cells):
    rest = (
        "repeats: 2\nsweep: {to: {set: [workloads.transfer.to], values: [home.sat, home.phone]}}\nlinks: {sat: "
        "{forward: {errors: {ber: 1e-6}}}}\n"
    )
    planned = {cell.id: planning.plan(cell) for cell in cells(rest=rest)}
    text = planning.paths_text(planned)
    assert [line for line in text.splitlines() if line.startswith("2 cells")] == [
        '2 cells: "to=home.sat,r1", "to=home.sat,r2"',
        '2 cells: "to=home.phone,r1", "to=home.phone,r2"',
    ]
    assert re.search(r"^ {6}sat\.forward +noc +home +2 Mbit/s +265 ms +BER 1e-06, independent$", text, re.MULTILINE)
    assert "    home → server: at most 33.6 kbit/s (phone), delay 50 ms\n" in text
    assert planning.short_paths(planned) == [
        (
            "transfer: server ─lan→ core ─uplink→ noc ─sat→ home; back home ─phone→ isp ─backbone→ core ─lan→ "
            "server (2 of 4 cells)"
        ),
        "transfer: server ─lan→ core ─backbone→ isp ─phone→ home; back the same way (2 of 4 cells)",
    ]


PING = "  - {{kind: ping, name: {}, from: {}, to: {}}}\n"


@golden.each("ends of a workload", "case source sink")
def test_an_end_that_names_nothing_is_said_with_what_is_near(case, cells, source, sink, tmp_path):
    case.hold(refusal(cells, PING.format("p", source, sink), ""), tmp_path)


def test_two_ends_of_a_host_that_contact_one_address_are_refused(cells, told):
    both = PING.format("p", "home.sat", "server") + PING.format("q", "home.phone", "server")
    told("ends of workloads", "two of a host", cells, both)


@golden.each("routes")
def test_a_route_that_leads_nowhere_is_said_with_what_is_near(case, cells, tmp_path):
    case.hold(refusal(cells, TRANSFER, f"routes: {{{case}}}"), tmp_path)


def two_ways():
    """Two routers with two links between them, one of which has a LAN with another router."""
    net = Network("two_ways")
    for name in ("r1", "r2", "r3"):
        net.router(name)
    net.switch("lan")
    net.link("r1", "r2", name="sky", a_ip="10.8.0.1/30", b_ip="10.8.0.2/30")
    net.link("r1", "r2", name="wire", a_ip="10.9.0.1/30", b_ip="10.9.0.2/30")
    net.link("r2", "lan", name="shore", a_ip="10.1.0.2/24")
    net.link("r3", "lan", name="sea", a_ip="10.1.0.3/24")
    return net


@golden.each("routes in words of nodes and links")
def test_destinations_and_next_hops_are_named_by_node_link_or_address(case):
    net = two_ways()
    net.route(*case.split())
    case.hold(
        "\n".join(f"{one.name}: {route.to} by {route.via}" for one in net.plan().speaking for route in one.routes)
    )


@golden.each("routes of a topology file")
def test_a_route_that_leads_nowhere_says_where_it_could_lead(case):
    net = two_ways()
    net.route(*case.split())
    case.hold(refusal(net.plan, error=ValueError))


def test_two_links_have_two_names(told):
    """Otherwise `r1.sky` would be two addresses."""
    ips = {"a_ip": "10.7.0.1/30", "b_ip": "10.7.0.2/30"}
    told("links of one name", "sky", two_ways().link, "r1", "r3", name="sky", **ips, error=ValueError)
