"""Two LANs with a gateway each, and a satellite hop with a slow return between them: where a performance-enhancing
proxy stands.

client ── lan1 ── g1 ══ hop: forward → ═══════ g2 ── lan2 ── server
                       via sat

Without a service of kind `gateway`, g1 and g2 are plain routers. Their routes to each other's LAN are default routes,
so that those of a gateway win.
"""

from scpslab.lab import custom
from scpslab.topology import Direction, Network, OneProduct, Parameters, Queue, duration, rate, size

PARAMETERS = Parameters(
    lan_rate=rate("100 Mbit/s", "rate of either LAN"),
    lan_delay=duration("0.5 ms", "one-way delay of either LAN"),
    mtu=size("1500 B", "IP MTU everywhere"),
)

FORWARD_BPS, RETURN_BPS = 10_000_000, 1_000_000
HOP_DELAY_NS = 265_000_000  # apparatus A-09
HOP_FRAMING_BYTES = 4

ETHERNET_OVERHEAD_BYTES = 38  # preamble 8, header 14, frame check 4, gap 12
LAN_BUFFER_BYTES = 4 << 20  # never the bottleneck


def describe(p: dict) -> Network:
    """The network for parameter values `p` in base units."""
    net = Network("gateway")
    net.host("client", role="source")
    net.host("server", role="sink")
    net.router("g1")
    net.router("g2")

    def lan(host: str, gateway: str, switch: str, number: int) -> None:
        net.switch(switch)
        wide = Queue(limit_bytes=LAN_BUFFER_BYTES)
        net.link(
            host,
            gateway,
            name=switch,
            via=switch,
            a_ip=f"10.{number}.0.1/24",
            b_ip=f"10.{number}.0.254/24",
            forward=Direction("forward", p["lan_rate"], ETHERNET_OVERHEAD_BYTES, wide, p["lan_delay"]),
            reverse=Direction("return", p["lan_rate"], ETHERNET_OVERHEAD_BYTES, wide, p["lan_delay"]),
            mtu_bytes=p["mtu"],
        )
        net.route(host, "default", f"10.{number}.0.254")

    lan("client", "g1", "lan1", 1)
    lan("server", "g2", "lan2", 2)
    net.switch("sat")
    net.link(
        "g1",
        "g2",
        name="hop",
        via="sat",
        a_ip="10.9.0.1/30",
        b_ip="10.9.0.2/30",
        forward=Direction("forward", FORWARD_BPS, HOP_FRAMING_BYTES, OneProduct(), HOP_DELAY_NS),
        reverse=Direction("return", RETURN_BPS, HOP_FRAMING_BYTES, OneProduct(), HOP_DELAY_NS),
        mtu_bytes=p["mtu"],
    )
    net.route("g1", "default", "10.9.0.2")
    net.route("g2", "default", "10.9.0.1")
    return net


topos = {"gateway": custom.topo(PARAMETERS, describe)}
