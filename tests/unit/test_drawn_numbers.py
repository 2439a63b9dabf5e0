"""Captures without the numbers that a kernel draws: equal when only those differ."""

import struct
from dataclasses import dataclass

import pytest

from tools.drawn_numbers import without_drawn_numbers

HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 96, 1)


@dataclass(frozen=True)
class Drawn:
    """What a kernel draws for a connection."""

    port: int = 40_000
    client: int = 1_000
    server: int = 2_000
    identification: int = 7
    time: int = 77


def segment(drawn, at_ns, *, from_client, offset, ack, flags=0, sack=None) -> bytes:
    """A pcap record with a TCP segment; `offset`, `ack` and `sack` count from the first sequence numbers."""
    own, other = (drawn.client, drawn.server) if from_client else (drawn.server, drawn.client)
    ports = (drawn.port, 5001) if from_client else (5001, drawn.port)
    hosts = (b"\x0a\0\0\1", b"\x0a\0\0\2") if from_client else (b"\x0a\0\0\2", b"\x0a\0\0\1")
    options = struct.pack("!BBBBII", 1, 1, 8, 10, drawn.time, 0)
    if sack is not None:
        options += struct.pack("!BBBBII", 1, 1, 5, 10, (other + sack) % 2**32, (other + sack + 100) % 2**32)
    acked = 0 if ack is None else (other + ack) % 2**32
    sequence, size = (own + offset) % 2**32, (20 + len(options)) // 4 << 4
    tcp = struct.pack("!HHIIBB", *ports, sequence, acked, size, flags | (16 if ack is not None else 0))
    tcp += struct.pack("!HHH", 9000, 1, 0)
    length = 20 + len(tcp) + len(options)
    ip = struct.pack("!BBHHHBBH", 0x45, 0, length, drawn.identification, 0, 64, 6, 99) + b"".join(hosts)
    frame = bytes(12) + b"\x08\0" + ip + tcp + options
    return struct.pack("<IIII", 1, at_ns, len(frame), len(frame)) + frame


def capture(drawn: Drawn, *, delay_ns: int = 500, acked: int = 101) -> bytes:
    """A handshake, and an acknowledgement with a SACK block."""
    parts = [
        segment(drawn, 100, from_client=True, offset=0, ack=None, flags=2),
        segment(drawn, 100 + delay_ns, from_client=False, offset=0, ack=1, flags=2),
        segment(drawn, 2000, from_client=True, offset=1, ack=acked, sack=300),
    ]
    return HEADER + b"".join(parts)


OTHERS = [Drawn(port=50_123), Drawn(client=2**32 - 1), Drawn(server=2**32 - 50), Drawn(identification=9), Drawn(time=1)]


@pytest.mark.parametrize("drawn", [*OTHERS, Drawn(41_000, 5, 6, 7, 8)])
def test_captures_that_differ_in_drawn_numbers_are_equal(drawn):
    assert capture(drawn) != capture(Drawn())
    assert without_drawn_numbers("a.pcap", capture(drawn)) == without_drawn_numbers("a.pcap", capture(Drawn()))


@pytest.mark.parametrize("change", [{"delay_ns": 501}, {"acked": 102}])
def test_what_the_network_does_still_counts(change):
    changed, same = (without_drawn_numbers("a.pcap", capture(Drawn(), **how)) for how in (change, {}))
    assert changed != same


def test_ports_in_records_are_numbered_as_they_come():
    line = b'{"port": %d, "bytes": 40001.5, "t": %s}'
    first, second, later = (
        without_drawn_numbers("tcp.jsonl", line % port_and_time)
        for port_and_time in ((40001, b"0.40001"), (59999, b"0.40001"), (40001, b"0.40002"))
    )
    assert first == second
    assert first != later
