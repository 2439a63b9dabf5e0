"""Paths follow routes as a Linux kernel does, and end with an error that names the node where a packet would."""

from dataclasses import replace

import pytest

from scpslab.plan.paths import NoPathError
from scpslab.plan.routes import NO_OPTIONS, Route
from scpslab.plan.topology import Direction, Network, Serial
from scpslab.scenario import topologies
from tests import golden


def diamond(*routes):
    """Two hosts, each with a LAN to a router of its own; two links between the routers, and a third router beside
    them.
    """
    net = Network("diamond")
    net.host("a")
    net.host("b")
    for name in ("r1", "r2", "r3"):
        net.router(name)
    net.switch("lan")
    net.link("a", "lan", a_ip="10.1.0.1/24")
    net.link("r1", "lan", a_ip="10.1.0.254/24")
    net.link("b", "r2", name="drop", a_ip="10.2.0.1/24", b_ip="10.2.0.254/24")
    net.link("r1", "r2", name="sky", a_ip="10.8.0.1/30", b_ip="10.8.0.2/30")
    net.link("r1", "r2", name="wire", a_ip="10.9.0.1/30", b_ip="10.9.0.2/30")
    net.link("r1", "r3", name="spur", a_ip="10.7.0.1/30", b_ip="10.7.0.2/30")
    for route in (("a", "default", "r1"), ("b", "default", "drop"), *routes):
        net.route(*route)
    return net


BOTH = (("r1", "b", "sky"), ("r2", "10.1.0.0/24", "r1.wire"))


def paths(net):
    """The paths of a described network."""
    found = net.plan()
    return found.paths


def names(hops):
    """Links and directions."""
    return [f"{hop.link.name}.{hop.direction.name}" for hop in hops]


def changed(net, node, **values):
    """The paths of a network with another node of this name."""
    found = net.plan()
    nodes = tuple(replace(one, **values) if one.name == node else one for one in found.nodes)
    return replace(found, nodes=nodes).paths


def test_each_direction_has_its_own_routes():
    found = paths(diamond(*BOTH))
    assert names(found.path("a", "b", "10.2.0.1")) == ["a-lan.forward", "r1-lan.return", "sky.forward", "drop.return"]
    assert names(found.path("b", "a", "10.1.0.1")) == ["drop.forward", "wire.return", "r1-lan.forward", "a-lan.return"]


def test_the_longest_prefix_decides_and_a_host_beats_the_subnet_of_an_interface():
    routes = (("r1", "default", "spur"), ("r1", "10.2.0.0/24", "wire"), ("r1", "10.2.0.1", "sky"))
    assert names(paths(diamond(*routes)).path("a", "b", "10.2.0.1"))[2] == "sky.forward"
    assert names(paths(diamond(*routes[:2])).path("a", "b", "10.2.0.1"))[2] == "wire.forward"
    # r2's neighbour on `sky`, by `wire`.
    assert names(paths(diamond(("r2", "r1.sky", "wire"))).path("r2", "r1", "10.8.0.1")) == ["wire.return"]
    assert names(paths(diamond()).path("r2", "r1", "10.8.0.1")) == ["sky.return"]


def test_the_last_of_two_routes_to_a_prefix_holds():
    assert names(paths(diamond(("r1", "b", "wire"), ("r1", "b", "sky"))).path("a", "b", "10.2.0.1"))[2] == "sky.forward"


def test_the_kernel_sends_from_the_interface_unless_the_route_says_otherwise():
    found = paths(diamond(*BOTH))
    assert found.next_hop("r1", "10.2.0.1").source == "10.8.0.1"
    assert found.next_hop("a", "10.1.0.254").source == "10.1.0.1"
    route = Route(to="10.2.0.1/32", via="10.8.0.2", src="10.9.0.1", **NO_OPTIONS)
    assert changed(diamond(), "r1", routes=(route,)).next_hop("r1", "10.2.0.1").source == "10.9.0.1"


def test_a_serial_link_reaches_its_peer_alone():
    net = Network("line")
    net.host("a")
    net.host("b")
    one = Direction("one", 9600)
    addresses, ways = (
        {"a_ip": "10.7.0.1/24", "b_ip": "10.7.0.2/24"},
        {"forward": one, "reverse": replace(one, name="two")},
    )
    net.serial_link("a", "b", name="serial", serial=Serial(), **addresses, **ways)
    found = paths(net)
    assert names(found.path("a", "b", "10.7.0.2")) == ["serial.one"]
    with pytest.raises(NoPathError, match=r"^a has no route to 10\.7\.0\.3$"):
        found.path("a", "b", "10.7.0.3")


def ends_at(call):
    """The node where packets end, and why."""
    with pytest.raises(NoPathError) as caught:
        call().path("a", "b", "10.2.0.1")
    return f"{caught.value.node}: {caught.value}"


@golden.each("where packets end")
def test_an_error_names_the_node_where_packets_end(case):
    routes = [route.split() for route in case.split(", ") if route != "no route"]
    case.hold(ends_at(lambda: paths(diamond(*routes))))


@golden.each("where packets end by routes of foreign plans", "case to via")
def test_routes_of_foreign_plans_are_followed_no_further_than_they_lead(case, to, via):
    route = Route(to=to, via=None if via == "nothing" else via, **NO_OPTIONS)
    case.hold(ends_at(lambda: changed(diamond(), "r1", routes=(route,))))


def test_hosts_do_not_forward_unless_their_kernel_is_told_to():
    """As a host of stack scps is, which passes packets to its program."""
    net = Network("chain")
    for name in ("a", "m", "b"):
        net.host(name)
    net.link("a", "m", name="left", a_ip="10.1.0.1/30", b_ip="10.1.0.2/30")
    net.link("m", "b", name="right", a_ip="10.2.0.1/30", b_ip="10.2.0.2/30")
    net.route("a", "default", "left")
    with pytest.raises(NoPathError, match=r"^m is a host, which does not forward packets to 10\.2\.0\.2$"):
        paths(net).path("a", "b", "10.2.0.2")
    assert names(changed(net, "m", sysctls={"net.ipv4.ip_forward": "1"}).path("a", "b", "10.2.0.2")) == [
        "left.forward",
        "right.forward",
    ]


@pytest.mark.parametrize("name", topologies.names())
def test_every_node_of_every_topology_answers_its_neighbours(name):
    """One hop to each neighbour's address, or the link that a route says instead."""
    module = topologies.module(name)
    found = module.describe(module.PARAMETERS.read({})).plan()
    known = found.paths
    for link in found.all_links:
        first, second = link.ends
        if first.ip and second.ip:
            hops = known.path(first.node, second.node, second.ip.split("/")[0])
            assert hops[-1].direction.to == second.node
