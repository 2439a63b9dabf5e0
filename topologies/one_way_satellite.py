"""A satellite that only sends, and a telephone line for the way back (the arrangement of DirecPC in 1996): each
direction takes other links.

                  ┌── noc ══ sat: data → ═══════════════╗
server ── core ───┤          via satellite              home sink
source            └── isp ══ phone: data → / ← ACK ═════╝
                             via exchange

home has an address on each of its two links. Packets to its address on `sat` come by the satellite, those to its
address on `phone` by telephone. What home sends goes by telephone, whatever address it is sent from: its routes say so.
"""

from scpslab.lab import custom
from scpslab.topology import Direction, Network, Parameters, Queue, duration, rate, size

PARAMETERS = Parameters(
    sat_rate=rate("2 Mbit/s", "rate of the satellite link, noc to home"),
    sat_delay=duration("265 ms", "one-way delay of the satellite link (apparatus A-09)"),
    sat_buffer=size("135 kB", "noc's queue before the satellite link in wire bytes; about one bandwidth-delay product"),
    phone_rate=rate("33.6 kbit/s", "rate of the telephone line, each way (a modem of ITU-T V.34)"),
    phone_delay=duration("50 ms", "one-way delay of the telephone line, modems included"),
    phone_buffer=size("16 kB", "queue before the telephone line in wire bytes, each way"),
    phone_framing=size("8 B", "framing bytes of PPP per packet on the telephone line", least=0),
    lan_rate=rate("100 Mbit/s", "rate of every other link"),
    wide_buffer=size("1 MiB", "queue of every other interface in wire bytes; never the bottleneck"),
    mtu=size("1500 B", "IP MTU everywhere"),
)

ETHERNET_OVERHEAD_BYTES = 38  # preamble 8, header 14, frame check 4, gap 12


def describe(p: dict) -> Network:
    """The network for parameter values `p` in base units."""
    net = Network("one_way_satellite")
    net.host("server", role="source")
    net.host("home", role="sink")
    for name in ("core", "noc", "isp"):
        net.router(name)
    net.switch("satellite")
    net.switch("exchange")

    def wire(a: str, b: str, name: str, a_ip: str, b_ip: str) -> None:
        queue = Queue(limit_bytes=p["wide_buffer"])
        there, back = (Direction(word, p["lan_rate"], ETHERNET_OVERHEAD_BYTES, queue) for word in ("data", "ack"))
        net.link(a, b, name=name, a_ip=a_ip, b_ip=b_ip, forward=there, reverse=back, mtu_bytes=p["mtu"])

    wire("server", "core", "lan", "10.1.0.1/24", "10.1.0.254/24")
    wire("core", "noc", "uplink", "10.2.0.1/30", "10.2.0.2/30")
    wire("core", "isp", "backbone", "10.3.0.1/30", "10.3.0.2/30")
    net.link(
        "noc",
        "home",
        name="sat",
        via="satellite",
        a_ip="10.8.0.1/30",
        b_ip="10.8.0.2/30",
        forward=Direction("data", p["sat_rate"], 0, Queue(limit_bytes=p["sat_buffer"]), p["sat_delay"]),
        # home has no transmitter. A link has two directions all the same; no route leads over this one.
        reverse=Direction("unused", p["sat_rate"], 0, Queue(limit_bytes=p["sat_buffer"]), p["sat_delay"]),
        mtu_bytes=p["mtu"],
    )
    phone = Queue(limit_bytes=p["phone_buffer"])
    net.link(
        "isp",
        "home",
        name="phone",
        via="exchange",
        a_ip="10.9.0.1/30",
        b_ip="10.9.0.2/30",
        forward=Direction("data", p["phone_rate"], p["phone_framing"], phone, p["phone_delay"]),
        reverse=Direction("ack", p["phone_rate"], p["phone_framing"], phone, p["phone_delay"]),
        mtu_bytes=p["mtu"],
    )
    net.route("server", "default", "lan")
    net.route("core", "10.8.0.0/30", "noc")
    net.route("core", "10.9.0.0/30", "isp")
    net.route("noc", "default", "uplink")
    net.route("isp", "default", "backbone")
    net.route("home", "default", "phone")
    # Its neighbour too, which it could otherwise send to directly.
    net.route("home", "noc.sat", "phone")
    return net


topos = {"one_way_satellite": custom.topo(PARAMETERS, describe)}
