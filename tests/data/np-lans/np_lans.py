"""Two hosts on two LANs, and a router of SCPS-NP between them.

a ── r ── b
"""

from scpslab.lab import custom
from scpslab.plan.topology import Network, Parameters

PARAMETERS = Parameters()


def describe(_p: dict) -> Network:
    """The network; it has no parameters."""
    net = Network("np_lans")
    net.host("a", role="source")
    net.host("b", role="sink")
    net.scps_router("r")
    net.link("a", "r", a_ip="10.1.0.1/24", b_ip="10.1.0.2/24")
    net.link("r", "b", a_ip="10.2.0.1/24", b_ip="10.2.0.2/24")
    return net


topos = {"np_lans": custom.topo(PARAMETERS, describe)}
