"""A satellite path and a terrestrial one that share a router's buffer (MITRE FY97, A.1.1: who fills it first?).

far  source ══ hop: forward → ═══════ r1 ── trunk: forward → ─────── sink
               via sat                │
near source ── lan ───────────────────┘
"""

from scpslab.lab import custom
from scpslab.topology import Direction, Network, Parameters, Queue, size

PARAMETERS = Parameters(
    wide_buffer=size("1 MiB", "queue of every other interface in wire bytes; never the bottleneck"),
    mtu=size("1500 B", "IP MTU everywhere"),
)

TRUNK_RATE_BPS = 2_000_000
TRUNK_DELAY_NS = 5_000_000
TRUNK_BUFFER_BYTES = 135_000  # about one bandwidth-delay product of the satellite path
HOP_RATE_BPS = 10_000_000  # above the trunk's, so that only the trunk's queue fills
HOP_DELAY_NS = 265_000_000  # apparatus A-09
LAN_RATE_BPS = 10_000_000

# What the directions of all links were called before.
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
        forward=Direction("forward", HOP_RATE_BPS, 0, wide, HOP_DELAY_NS),
        reverse=Direction("return", HOP_RATE_BPS, 0, wide, HOP_DELAY_NS),
        mtu_bytes=p["mtu"],
    )
    net.link(
        "near",
        "r1",
        name="lan",
        a_ip="10.2.0.1/24",
        b_ip="10.2.0.254/24",
        forward=Direction("forward", LAN_RATE_BPS, ETHERNET_OVERHEAD_BYTES, wide),
        reverse=Direction("return", LAN_RATE_BPS, ETHERNET_OVERHEAD_BYTES, wide),
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
        forward=Direction("forward", TRUNK_RATE_BPS, 0, Queue(limit_bytes=TRUNK_BUFFER_BYTES), TRUNK_DELAY_NS),
        reverse=Direction("return", TRUNK_RATE_BPS, 0, wide, TRUNK_DELAY_NS),
        mtu_bytes=p["mtu"],
    )
    net.route("far", "default", "10.1.0.254")
    net.route("near", "default", "10.2.0.254")
    net.route("sink", "default", "10.3.0.254")
    return net


topos = {"shared_router": custom.topo(PARAMETERS, describe)}
