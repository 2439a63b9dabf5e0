"""Two hosts joined by the Space-to-Ground Link Simulator of New Mexico State and Lamar (ITC 1999, SmallSat 2000,
Aerospace 2001, JZUS 2005).

    satellite ══ pty ── PPP ── serial: forward → ─────── PPP ── pty ══ ground
                               baud rate, delay, error vector

The satellite sends files to the ground over the data path; acknowledgements come back over the ACK path. A null-modem
cable, the papers' best case, is the same line without what the simulator adds: `inherent_delay: 0 ms` and no errors.
"""

from scpslab.lab import custom
from scpslab.topology import Direction, Network, Parameters, Serial, count, duration, size

PARAMETERS = Parameters(
    data_delay=duration(
        "0 ms",
        "delay imposed from satellite to ground: 3 ms (LEO), 120 ms (GEO) and 1280 ms (lunar) in the papers, up to 5 s",
    ),
    ack_delay=duration("0 ms", "delay imposed from ground to satellite"),
    inherent_delay=duration(
        "23.3 ms",
        (
            "what the simulator itself adds each way: half of the 46.6 ms of a path of 671 bytes at 115200 bit/s "
            "(apparatus B-11)"
        ),
    ),
    bits_per_byte=count(
        10, "bits on the line per byte: 10 with one start and one stop bit (8N1), 8 for a synchronous line"
    ),
    buffer=size(
        "1 MiB",
        (
            "bytes that may wait for the line in the simulator; there is no handshake, and the papers do not say "
            "how many fit (apparatus B-06)"
        ),
    ),
    vector=size(
        "128 KiB",
        (
            "length of an error vector before it repeats: about 1 Mbit in the simulator (apparatus B-08); 0 B: "
            "it never repeats"
        ),
        least=0,
    ),
    mru=size("1500 B", "largest IP packet of PPP"),
    asyncmap=count(
        0, "characters that PPP escapes, as a number: 0 for none of the control characters, 4294967295 for all 32"
    ),
    header_compression=count(0, "1: PPP compresses TCP/IP headers after Van Jacobson (RFC 1144); 0: it does not"),
)

BAUD = 115_200  # 2400 to 115200 in the papers


def describe(p: dict) -> Network:
    """The network for parameter values `p` in base units."""
    net = Network("sgls")
    net.host("satellite", role="source")
    net.host("ground", role="sink")
    net.serial_link(
        "satellite",
        "ground",
        name="serial",
        a_ip="10.7.0.1/30",
        b_ip="10.7.0.2/30",
        forward=Direction("forward", BAUD, delay_ns=p["data_delay"] + p["inherent_delay"]),
        reverse=Direction("return", BAUD, delay_ns=p["ack_delay"] + p["inherent_delay"]),
        serial=Serial(
            bits_per_byte=p["bits_per_byte"],
            buffer_bytes=p["buffer"],
            vector_bits=8 * p["vector"],
            mru_bytes=p["mru"],
            asyncmap=p["asyncmap"],
            header_compression=bool(p["header_compression"]),
        ),
    )
    return net


topos = {"sgls": custom.topo(PARAMETERS, describe)}
