"""Routes of a topology: in words of nodes and links, each direction for itself."""

import pytest

from scpslab.plan.topology import Network
from tests import golden
from tests.cases import refusal


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


@pytest.mark.parametrize(
    ("route", "found"),
    [
        (("r1", "r3", "sky"), {("r1", "10.1.0.3/32"): "10.8.0.2"}),
        (("r1", "r3", "r2.wire"), {("r1", "10.1.0.3/32"): "10.9.0.2"}),
        (("r1", "r2", "sky"), {("r1", "10.9.0.2/32"): "10.8.0.2", ("r1", "10.1.0.2/32"): "10.8.0.2"}),
        (("r1", "r2.wire", "sky"), {("r1", "10.9.0.2/32"): "10.8.0.2"}),
        (("r1", "10.1.0.0/24", "10.9.0.2"), {("r1", "10.1.0.0/24"): "10.9.0.2"}),
        (("r3", "default", "r2"), {("r3", "default"): "10.1.0.2"}),
        (("r3", "10.8.0.1", "r2.shore"), {("r3", "10.8.0.1/32"): "10.1.0.2"}),
    ],
)
def test_destinations_and_next_hops_are_named_by_node_link_or_address(route, found):
    net = two_ways()
    net.route(*route)
    assert {(node.name, route.to): route.via for node in net.plan().speaking for route in node.routes} == found


@golden.each("routes of a topology file")
def test_a_route_that_leads_nowhere_says_where_it_could_lead(case):
    net = two_ways()
    net.route(*case.split())
    case.hold(refusal(net.plan, error=ValueError))


def test_two_links_have_two_names():
    """Otherwise `r1.sky` would be two addresses."""
    link = two_ways().link
    said = refusal(link, "r1", "r3", name="sky", a_ip="10.7.0.1/30", b_ip="10.7.0.2/30", error=ValueError)
    assert said == "link sky: found the name a second time; expected it once. Rename one of the links."
