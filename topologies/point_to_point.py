"""Two hosts and one hop with a rate, a delay and errors in each direction: the smallest network worth measuring.

source h1 ══ hop: data → / ← ACK ══ h2 sink
             via sat
"""

from scpslab.lab import custom
from scpslab.topology import Direction, Network, Parameters, Queue, duration, rate, size

PARAMETERS = Parameters(
    data_rate=rate("2 Mbit/s", "rate from h1 to h2"),
    ack_rate=rate("2 Mbit/s", "rate from h2 to h1"),
    data_delay=duration("250 ms", "one-way delay from h1 to h2"),
    ack_delay=duration("250 ms", "one-way delay from h2 to h1"),
    data_buffer=size("125 kB", "h1's queue before the hop, in wire bytes"),
    ack_buffer=size("125 kB", "h2's queue before the hop, in wire bytes"),
    framing=size("0 B", "framing bytes per packet on the hop", least=0),
    mtu=size("1500 B", "IP MTU"),
)


def describe(p: dict) -> Network:
    """The network for parameter values `p` in base units."""
    net = Network("point_to_point")
    net.host("h1", role="source")
    net.host("h2", role="sink")
    net.switch("sat")
    net.link(
        "h1",
        "h2",
        name="hop",
        via="sat",
        a_ip="10.0.0.1/30",
        b_ip="10.0.0.2/30",
        forward=Direction("data", p["data_rate"], p["framing"], Queue(limit_bytes=p["data_buffer"]), p["data_delay"]),
        reverse=Direction("ack", p["ack_rate"], p["framing"], Queue(limit_bytes=p["ack_buffer"]), p["ack_delay"]),
        mtu_bytes=p["mtu"],
    )
    return net


topos = {"point_to_point": custom.topo(PARAMETERS, describe)}
