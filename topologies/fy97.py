"""The FY97 network: two LANs joined by a bent-pipe geostationary satellite hop (MITRE FY97, Fig 3; configuration 1).

    ws1 source ───┐                                                    ┌─── ws2 sink
    ws3 congestion┼─ lan1 ── r1 ══ hop: forward → ═══════ r2 ── lan2 ──┘
    ws4 monitor ──┘                via sat, the satellite

Every value is the report's, or the stated choice where the report is silent.
Use it in a scenario (`topology: fy97`) or as `mn --custom topologies/fy97.py --topo fy97,mtu=102B`.
"""

from scpslab.lab import custom
from scpslab.topology import Direction, Network, OneProduct, Parameters, Queue, duration, rate, size

PARAMETERS = Parameters(
    lan_rate=rate(
        "10 Mbit/s", "Ethernet of the period at Rome Laboratory (apparatus A-05: fast compared with the hop)"
    ),
    lan_buffer=size("256 KiB", "queue of a LAN interface in wire bytes; never the bottleneck"),
    source_packet_time=duration(
        "0 ms",
        (
            "what a packet costs ws1's processor; 0.648 ms make the 1316 packets/s that the report's 50-byte "
            "results suggest for its 486 (apparatus C-09)"
        ),
    ),
    mtu=size("1500 B", "IP MTU everywhere; 102 B gives 50-byte segments with timestamps (apparatus C-08)"),
)

# Of the data path (report 3.1.1; 9600 bit/s is the other value). Of the ACK path the report is silent: the same rate is
# assumed (apparatus A-10).
HOP_RATE_BPS = 2_000_000
HOP_DELAY_NS = 265_000_000  # half of the 0.53 s idle host-to-host RTT (apparatus A-09)
HOP_FRAMING_BYTES = 4  # 1456 bytes for 1400 of data (report A.1)
MOST_WAITING_PACKETS = 10_000  # more than any window of the report holds
ETHERNET_OVERHEAD_BYTES = 38  # preamble 8, header 14, frame check 4, gap 12


def describe(p: dict) -> Network:
    """The network for parameter values `p` in base units."""
    net = Network("fy97")
    net.host("ws1", role="source")
    net.host("ws2", role="sink")
    net.host("ws3", role="congestion")
    net.host("ws4", role="monitor")
    net.router("r1")
    net.router("r2")
    net.switch("lan1", mirror_to="ws4")
    net.switch("lan2")
    net.switch("sat")

    def lan(node: str, switch: str, ip: str | None, packet_time_ns: int = 0) -> None:
        # A processor that is busy with a packet is a line that is busy with more bytes; it keeps its own packets
        # waiting and drops none.
        busy_bytes = packet_time_ns * p["lan_rate"] // (8 * 10**9)
        queue = Queue(limit_bytes=p["lan_buffer"])
        own = Queue(limit_bytes=p["lan_buffer"] + busy_bytes * MOST_WAITING_PACKETS)
        net.link(
            node,
            switch,
            a_ip=ip,
            forward=Direction("forward", p["lan_rate"], ETHERNET_OVERHEAD_BYTES + busy_bytes, own),
            reverse=Direction("return", p["lan_rate"], ETHERNET_OVERHEAD_BYTES, queue),
            mtu_bytes=p["mtu"],
        )

    lan("ws1", "lan1", "10.1.0.1/24", p["source_packet_time"])
    lan("ws3", "lan1", "10.1.0.3/24")
    net.link("ws4", "lan1", mtu_bytes=p["mtu"])
    lan("r1", "lan1", "10.1.0.254/24")
    lan("r2", "lan2", "10.2.0.254/24")
    lan("ws2", "lan2", "10.2.0.2/24")

    # The routers' queues before the hop hold one bandwidth-delay product (apparatus C-05).
    there, back = (
        Direction(word, HOP_RATE_BPS, HOP_FRAMING_BYTES, OneProduct(), HOP_DELAY_NS) for word in ("forward", "return")
    )
    net.link(
        "r1",
        "r2",
        name="hop",
        via="sat",
        a_ip="10.9.0.1/30",
        b_ip="10.9.0.2/30",
        forward=there,
        reverse=back,
        mtu_bytes=p["mtu"],
    )
    for host in ("ws1", "ws3"):
        net.route(host, "default", "10.1.0.254")
    net.route("ws2", "default", "10.2.0.254")
    net.route("r1", "10.2.0.0/24", "10.9.0.2")
    net.route("r2", "10.1.0.0/24", "10.9.0.1")
    return net


topos = {"fy97": custom.topo(PARAMETERS, describe)}
