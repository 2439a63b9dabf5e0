"""A satellite that only sends, and a telephone line for the way back (the arrangement of DirecPC in 1996): each
direction takes other links.

                  ┌── noc ══ sat: forward → ════════════╗
server ── core ───┤          via satellite              home sink
source            └── isp ══ phone: forward → ══════════╝
                             via exchange

home has an address on each of its two links. Packets to its address on `sat` come by the satellite, those to its
address on `phone` by telephone. What home sends goes by telephone, whatever address it is sent from: its routes say so.
"""

from scpslab.lab import custom
from scpslab.topology import Direction, Network, Parameters, Queue, rate, size

PARAMETERS = Parameters(
    lan_rate=rate("100 Mbit/s", "rate of every other link"),
    wide_buffer=size("1 MiB", "queue of every other interface in wire bytes; never the bottleneck"),
    mtu=size("1500 B", "IP MTU everywhere"),
)

SAT_RATE_BPS = 2_000_000
SAT_DELAY_NS = 265_000_000  # apparatus A-09
SAT_BUFFER_BYTES = 135_000  # about one bandwidth-delay product
PHONE_RATE_BPS = 33_600  # a modem of ITU-T V.34
PHONE_DELAY_NS = 50_000_000  # modems included
PHONE_BUFFER_BYTES = 16_000
PHONE_FRAMING_BYTES = 8  # of PPP

# What the directions of links were called before.
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
        there, back = (Direction(word, p["lan_rate"], ETHERNET_OVERHEAD_BYTES, queue) for word in ("forward", "return"))
        net.link(a, b, name=name, a_ip=a_ip, b_ip=b_ip, forward=there, reverse=back, mtu_bytes=p["mtu"])

    wire("server", "core", "lan", "10.1.0.1/24", "10.1.0.254/24")
    wire("core", "noc", "uplink", "10.2.0.1/30", "10.2.0.2/30")
    wire("core", "isp", "backbone", "10.3.0.1/30", "10.3.0.2/30")
    satellite = Queue(limit_bytes=SAT_BUFFER_BYTES)
    net.link(
        "noc",
        "home",
        name="sat",
        via="satellite",
        a_ip="10.8.0.1/30",
        b_ip="10.8.0.2/30",
        forward=Direction("forward", SAT_RATE_BPS, 0, satellite, SAT_DELAY_NS),
        # home has no transmitter. A link has two directions all the same; no route leads over this one.
        reverse=Direction("return", SAT_RATE_BPS, 0, satellite, SAT_DELAY_NS),
        mtu_bytes=p["mtu"],
    )
    phone = Queue(limit_bytes=PHONE_BUFFER_BYTES)
    net.link(
        "isp",
        "home",
        name="phone",
        via="exchange",
        a_ip="10.9.0.1/30",
        b_ip="10.9.0.2/30",
        forward=Direction("forward", PHONE_RATE_BPS, PHONE_FRAMING_BYTES, phone, PHONE_DELAY_NS),
        reverse=Direction("return", PHONE_RATE_BPS, PHONE_FRAMING_BYTES, phone, PHONE_DELAY_NS),
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
