"""Two hosts and one hop with a rate, a delay and errors in each direction: the smallest network worth measuring.

source h1 ══ hop: forward → ═══════ h2 sink
             via sat
"""

from scpslab.lab import custom
from scpslab.topology import Direction, Network, Parameters, Queue, size

PARAMETERS = Parameters(
    mtu=size("1500 B", "IP MTU"),
)

HOP_RATE_BPS = 2_000_000
HOP_DELAY_NS = 250_000_000
HOP_BUFFER_BYTES = 125_000


def describe(p: dict) -> Network:
    """The network for parameter values `p` in base units."""
    net = Network("point_to_point")
    net.host("h1", role="source")
    net.host("h2", role="sink")
    net.switch("sat")
    queue = Queue(limit_bytes=HOP_BUFFER_BYTES)
    there, back = (Direction(word, HOP_RATE_BPS, 0, queue, HOP_DELAY_NS) for word in ("forward", "return"))
    net.link(
        "h1",
        "h2",
        name="hop",
        via="sat",
        a_ip="10.0.0.1/30",
        b_ip="10.0.0.2/30",
        forward=there,
        reverse=back,
        mtu_bytes=p["mtu"],
    )
    return net


topos = {"point_to_point": custom.topo(PARAMETERS, describe)}
