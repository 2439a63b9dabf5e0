"""The FY97 network with SCPS-NP: NP routers between the LANs and the modems (MITRE FY97, Fig 19; configuration 2).

    ws1 source ───┐                                                               ┌─── ws2 sink
    ws3 congestion┼─ lan1 ── ws5 NP router ══ modem: forward → ═══════ ws6 NP router ── lan2 ──┘
    ws4 monitor ──┘  [TP/NP]IP           NP on a serial line            [TP/NP]IP

The hosts run SCPS-NP in IP as far as their router; between the routers it is bare, in the frames of a synchronous
serial line (apparatus A-20, A-21). A router keeps each packet in its precedence queues until the line is free; ws3
loads ws5 (apparatus A-22).
"""

from scpslab.lab import custom
from scpslab.topology import Direction, Network, Parameters, Queue, Serial, count, rate, size

PARAMETERS = Parameters(
    bits_per_byte=count(
        8,
        (
            "bits on the line per byte: 8 on a synchronous line such as RS-449 (apparatus A-21), 10 with start and "
            "stop bits"
        ),
        least=1,
        most=20,
    ),
    buffer=size(
        "8 KiB",
        "bytes that may wait in the modem; the routers keep to the line rate, so more would only hide their queues",
    ),
    vector=size("0 B", "length of an error vector of the line before it repeats; 0 B: it never repeats", least=0),
    lan_rate=rate(
        "10 Mbit/s", "Ethernet of the period at Rome Laboratory (apparatus A-05: fast compared with the hop)"
    ),
    lan_buffer=size("256 KiB", "queue of a LAN interface in wire bytes; never the bottleneck"),
    mtu=size("1500 B", "IP MTU of the LANs, and longest datagram of the line"),
)

# Of the data path (report 3.3: the rates of configuration 1; 9600 bit/s is the other value). Of the ACK path the report
# is silent: the same rate is assumed (apparatus A-10).
MODEM_RATE_BPS = 2_000_000
MODEM_DELAY_NS = 265_000_000  # half of the 0.53 s idle host-to-host RTT (apparatus A-09)

ETHERNET_OVERHEAD_BYTES = 38  # preamble 8, header 14, frame check 4, gap 12


def describe(p: dict) -> Network:
    """The network for parameter values `p` in base units."""
    net = Network("fy97_np")
    net.host("ws1", role="source")
    net.host("ws2", role="sink")
    net.host("ws3", role="congestion")
    net.host("ws4", role="monitor")
    net.scps_router("ws5")
    net.scps_router("ws6")
    net.switch("lan1", mirror_to="ws4")
    net.switch("lan2")

    def lan(node: str, switch: str, ip: str | None) -> None:
        queue = Queue(limit_bytes=p["lan_buffer"])
        out, back = (Direction(name, p["lan_rate"], ETHERNET_OVERHEAD_BYTES, queue) for name in ("forward", "return"))
        net.link(node, switch, a_ip=ip, forward=out, reverse=back, mtu_bytes=p["mtu"])

    lan("ws1", "lan1", "10.1.0.1/24")
    lan("ws3", "lan1", "10.1.0.3/24")
    net.link("ws4", "lan1", mtu_bytes=p["mtu"])
    lan("ws5", "lan1", "10.1.0.5/24")
    lan("ws6", "lan2", "10.2.0.6/24")
    lan("ws2", "lan2", "10.2.0.2/24")
    net.serial_link(
        "ws5",
        "ws6",
        name="modem",
        forward=Direction("forward", MODEM_RATE_BPS, delay_ns=MODEM_DELAY_NS),
        reverse=Direction("return", MODEM_RATE_BPS, delay_ns=MODEM_DELAY_NS),
        serial=Serial(
            bits_per_byte=p["bits_per_byte"],
            buffer_bytes=p["buffer"],
            vector_bits=8 * p["vector"],
            mru_bytes=p["mtu"],
            is_np=True,
        ),
    )
    return net


topos = {"fy97_np": custom.topo(PARAMETERS, describe)}
