"""Routes of a topology: in words of nodes and links, each direction for itself."""

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
