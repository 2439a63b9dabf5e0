"""Terminals of a satellite network, each with a hop of its own to the hub, and one server behind the hub.

t1 ══ hop1: forward → ═══════╗
 …                           hub ── trunk: forward → ─────── server
tN ══ hopN: forward → ═══════╝
"""

from scpslab.lab import custom
from scpslab.topology import Direction, Network, Parameters, Queue, count, duration, rate, size

PARAMETERS = Parameters(
    terminals=count(8, "terminals: t1, t2 …, each with a hop: hop1, hop2 …", least=1, most=200),
    data_rate=rate("512 kbit/s", "rate of every hop from its terminal to the hub"),
    ack_rate=rate("2 Mbit/s", "rate of every hop from the hub to its terminal"),
    hop_delay=duration("265 ms", "one-way delay of every hop"),
    hop_buffer=size("135 kB", "queue before a hop in wire bytes, both ways"),
    mtu=size("1500 B", "IP MTU everywhere"),
)

TRUNK_RATE_BPS = 2_000_000
TRUNK_DELAY_NS = 5_000_000
TRUNK_BUFFER_BYTES = 135_000  # about one bandwidth-delay product
# What the directions of all links were called before.


def describe(p: dict) -> Network:
    """The network for parameter values `p` in base units."""
    net = Network("star")
    names = [f"t{number}" for number in range(1, p["terminals"] + 1)]
    for name in names:
        net.host(name, role="source")
    net.host("server", role="sink")
    net.router("hub")
    hop, trunk = Queue(limit_bytes=p["hop_buffer"]), Queue(limit_bytes=TRUNK_BUFFER_BYTES)
    for number, name in enumerate(names, start=1):
        net.switch(f"sat{number}")
        net.link(
            name,
            "hub",
            name=f"hop{number}",
            via=f"sat{number}",
            a_ip=f"10.1.{number}.1/24",
            b_ip=f"10.1.{number}.254/24",
            forward=Direction("forward", p["data_rate"], 0, hop, p["hop_delay"]),
            reverse=Direction("return", p["ack_rate"], 0, hop, p["hop_delay"]),
            mtu_bytes=p["mtu"],
        )
        net.route(name, "default", f"10.1.{number}.254")
    net.switch("wire")
    net.link(
        "hub",
        "server",
        name="trunk",
        via="wire",
        a_ip="10.2.0.254/24",
        b_ip="10.2.0.1/24",
        forward=Direction("forward", TRUNK_RATE_BPS, 0, trunk, TRUNK_DELAY_NS),
        reverse=Direction("return", TRUNK_RATE_BPS, 0, trunk, TRUNK_DELAY_NS),
        mtu_bytes=p["mtu"],
    )
    net.route("server", "default", "10.2.0.254")
    return net


topos = {"star": custom.topo(PARAMETERS, describe)}
