"""A satellite path and a terrestrial one that share a router's buffer (MITRE FY97, A.1.1: who fills it first?).

far  source ══ hop: data → / ← ACK ══ r1 ── trunk: data → / ← ACK ── sink
               via sat                │
near source ── lan ───────────────────┘
"""

from scpslab.lab import custom
from scpslab.topology import Direction, Network, Parameters, Queue, duration, rate, size

PARAMETERS = Parameters(
    trunk_rate=rate("2 Mbit/s", "rate of the trunk that both paths share, to the sink and back"),
    trunk_delay=duration("5 ms", "one-way delay of the trunk"),
    trunk_buffer=size(
        "135 kB",
        "the shared queue before the trunk in wire bytes; about one bandwidth-delay product of the satellite path",
    ),
    hop_rate=rate("10 Mbit/s", "rate of the satellite hop, above the trunk's so that only the trunk's queue fills"),
    hop_delay=duration("265 ms", "one-way delay of the satellite hop (apparatus A-09)"),
    lan_rate=rate("10 Mbit/s", "rate of the near source's link"),
    wide_buffer=size("1 MiB", "queue of every other interface in wire bytes; never the bottleneck"),
    mtu=size("1500 B", "IP MTU everywhere"),
)

ETHERNET_OVERHEAD_BYTES = 38  # preamble 8, header 14, frame check 4, gap 12


def describe(p: dict) -> Network:
    """The network for parameter values `p` in base units."""
    net = Network("shared_router")
    net.host("far", role="source")
    net.host("near", role="source")
    net.host("sink", role="sink")
    net.router("r1")
    net.switch("sat")
    wide = Queue(limit_bytes=p["wide_buffer"])
    net.link(
        "far",
        "r1",
        name="hop",
        via="sat",
        a_ip="10.1.0.1/24",
        b_ip="10.1.0.254/24",
        forward=Direction("data", p["hop_rate"], 0, wide, p["hop_delay"]),
        reverse=Direction("ack", p["hop_rate"], 0, wide, p["hop_delay"]),
        mtu_bytes=p["mtu"],
    )
    net.link(
        "near",
        "r1",
        name="lan",
        a_ip="10.2.0.1/24",
        b_ip="10.2.0.254/24",
        forward=Direction("data", p["lan_rate"], ETHERNET_OVERHEAD_BYTES, wide),
        reverse=Direction("ack", p["lan_rate"], ETHERNET_OVERHEAD_BYTES, wide),
        mtu_bytes=p["mtu"],
    )
    net.switch("wire")
    net.link(
        "r1",
        "sink",
        name="trunk",
        via="wire",
        a_ip="10.3.0.254/24",
        b_ip="10.3.0.1/24",
        forward=Direction("data", p["trunk_rate"], 0, Queue(limit_bytes=p["trunk_buffer"]), p["trunk_delay"]),
        reverse=Direction("ack", p["trunk_rate"], 0, wide, p["trunk_delay"]),
        mtu_bytes=p["mtu"],
    )
    net.route("far", "default", "10.1.0.254")
    net.route("near", "default", "10.2.0.254")
    net.route("sink", "default", "10.3.0.254")
    return net


topos = {"shared_router": custom.topo(PARAMETERS, describe)}
