"""The record's file: labtool makes it from the lines that the stages note, and the reader gives the lines back."""

import random
import struct
import subprocess
from dataclasses import dataclass

import numpy as np
import pytest

from scpslab.core.errors import ResultError
from scpslab.lab.packets import OFFER_BYTES, SIGHT_BYTES
from scpslab.measure.packets import FATES, NEVER, read
from scpslab.setup import images, silent

pytestmark = pytest.mark.slow

EPOCH_NS = 10**12
ENTERING, LEAVING, ARRIVING = 0, 1, 2
TCP, UDP, ICMP = 6, 17, 1
DIRECTION = f"hop forward {ENTERING} {LEAVING} {ARRIVING}\n"


@dataclass(frozen=True)
class Sent:
    """A packet: what is offered, and what becomes of it; None: never."""

    offered_ns: int
    due_ns: int
    left_ns: int | None
    arrived_ns: int | None
    fate: str
    bit_errors: int
    waited: int
    protocol: int
    port: int
    id_: int
    payload: int
    sequence: int
    acknowledgement: int
    window: int
    flags: int

    @property
    def wire(self) -> int:
        """Bytes on the wire."""
        return 20 + {TCP: 32, UDP: 8, ICMP: 0}[self.protocol] + self.payload

    @property
    def head(self) -> bytes:
        """The first bytes, as the stages note them."""
        addresses = bytes([10, 0, 0, 1, 10, 0, 0, 2])
        ip = struct.pack(">BBHHHBBH", 0x45, 0, self.wire, self.id_, 0x4000, 64, self.protocol, 0) + addresses
        if self.protocol == TCP:
            numbers = (self.sequence, self.acknowledgement, 8 << 4, self.flags, self.window, 0, 0)
            rest = struct.pack(">HHIIBBHHH", self.port, 5001, *numbers) + bytes(12)
        elif self.protocol == UDP:
            rest = struct.pack(">HHHH", self.port, 5002, 8 + self.payload, 0)
        else:
            rest = struct.pack(">BBHI", 8, 0, 0, self.sequence) + bytes(56)
        return (ip + rest)[:96]


def drawn(seed: int, count: int) -> list[Sent]:
    """Packets of a few flows, with everything at the edges of what a column holds."""
    draw, packets, now = random.Random(seed), [], -3 * 10**9
    for number in range(count):
        now += draw.choice((0, 1, 256, 10**6, 5 * 10**9))
        fate = draw.choice(
            ("delivered", "delivered", "delivered", "corrupt", "outage", "policy", "flipped", "queue", "unseen")
        )
        due = now + draw.randrange(1, 10**7) if fate != "queue" else 0
        left = None if fate == "queue" or (fate == "unseen" and draw.random() < 0.5) else due + draw.randrange(0, 5000)
        arrived = None if fate in ("queue", "unseen") else (left or 0) + draw.choice((0, 10**6, 1200 * 10**9))
        protocol = draw.choice((TCP, TCP, UDP, ICMP))
        packets.append(
            Sent(
                *(now, due, left, arrived, fate, draw.randrange(1, 9) if fate in ("corrupt", "flipped") else 0),
                *(
                    draw.randrange(10**6),
                    protocol,
                    draw.choice((40_000, 65_535)),
                    draw.choice((0, number % 65_536, 65_535)),
                ),
                *(draw.choice((0, 1, 1460)), draw.choice((0, 2**32 - 1, draw.randrange(2**32)))),
                *(draw.randrange(2**32), draw.choice((0, 65_535)), draw.randrange(1, 256)),
            )
        )
    return packets


def record(folder, packets: list[Sent], *, order=None) -> bytes:
    """The file for packets, which are seen in an order of their own at the end of the link."""
    offers, sights = [], []
    for number, packet in enumerate(packets):
        queued = FATES.index("queue") if packet.fate == "queue" else 0
        times = packet.offered_ns + EPOCH_NS, packet.due_ns + EPOCH_NS if packet.due_ns else 0
        sizes = (ENTERING, packet.wire, packet.waited, queued, len(packet.head), 0x0008, number)
        offers.append(struct.pack("<QQIIIIHHI96s", *times, *sizes, packet.head))
    for number in order or range(len(packets)):
        packet = packets[number]
        verdict = FATES.index(packet.fate) if packet.fate not in ("queue", "unseen") else 0
        if packet.left_ns is not None:
            sights.append(struct.pack("<QIIII", packet.left_ns + EPOCH_NS, LEAVING, 0, 0, number))
        if packet.arrived_ns is not None:
            sights.append(
                struct.pack("<QIIII", packet.arrived_ns + EPOCH_NS, ARRIVING, verdict, packet.bit_errors, number)
            )
    assert {len(line) for line in offers} <= {OFFER_BYTES}
    assert {len(line) for line in sights} <= {SIGHT_BYTES}
    (folder / "offers").write_bytes(b"".join(offers))
    (folder / "sights").write_bytes(b"".join(sights))
    labtool = images.ensure_tools(silent) / "labtool"
    argv = [
        labtool,
        "record",
        "--offers",
        folder / "offers",
        "--sights",
        folder / "sights",
        "--epoch-ns",
        str(EPOCH_NS),
    ]
    return subprocess.run(argv, input=DIRECTION.encode(), capture_output=True, check=True).stdout


def never(times: list[int | None]) -> list[int]:
    return [NEVER if time is None else time for time in times]


@pytest.mark.parametrize("count", [0, 1, 2, 300])
@pytest.mark.parametrize("is_ordered", [True, False])
def test_the_reader_gives_back_what_was_noted(tmp_path, count, is_ordered):
    """Also where packets overtake each other, and where some are dropped in a queue that does not say so."""
    packets = drawn(count, count)
    order = None if is_ordered else random.Random(7).sample(range(count), count)
    (path := tmp_path / "packets.rec").write_bytes(record(tmp_path, packets, order=order))

    (found,) = read(path)

    assert (found.link, found.direction, len(found)) == ("hop", "forward", count)
    assert found.offered_ns.tolist() == [packet.offered_ns for packet in packets]
    assert found.due_ns.tolist() == never([packet.due_ns or None for packet in packets])
    assert found.left_ns.tolist() == never([packet.left_ns for packet in packets])
    assert found.arrived_ns.tolist() == never([packet.arrived_ns for packet in packets])
    assert [FATES[fate] for fate in found.fate] == [packet.fate for packet in packets]
    for column, name in (
        ("wire_bytes", "wire"),
        ("waited_bytes", "waited"),
        ("id_", "id_"),
        ("bit_errors", "bit_errors"),
    ):
        assert getattr(found, column).tolist() == [getattr(packet, name) for packet in packets], column
    assert [found.flows[flow].protocol for flow in found.flow] == [packet.protocol for packet in packets]
    assert found.is_tcp.tolist() == [packet.protocol == TCP for packet in packets]
    for row in np.flatnonzero(found.is_tcp).tolist():
        mine = (
            found.sequence[row],
            found.acknowledgement[row],
            found.window[row],
            found.flags[row],
            found.payload[row],
        )
        packet = packets[row]
        assert mine == (packet.sequence, packet.acknowledgement, packet.window, packet.flags, packet.payload)
        assert found.flows[found.flow[row]].from_port == packet.port
    others = [packet.head[20:] for packet in packets if packet.protocol == ICMP]
    assert [bytes(head) for head in found.heads] == [head.ljust(64, b"\0")[:64] for head in others]


def test_a_damaged_file_is_refused_by_name(tmp_path):
    """Nothing is made of a size before the file has it."""
    whole = record(tmp_path, drawn(5, 40))
    path = tmp_path / "packets.rec"
    damaged = [
        whole[:-1],
        whole[1:],
        whole + b"\0",
        b"",
        whole.replace(b"packets 40", b"packets 4000000000"),
        whole.replace(b"flows ", b"flows 9999999"),
        whole.replace(b"direction hop", b"direction \n"),
    ]
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(ResultError, match=r"packets\.rec: found"):
            read(path)
    draw = random.Random(11)
    for _ in range(300):
        content = bytearray(whole)
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        path.write_bytes(content)
        try:
            read(path)
        except ResultError:
            continue
    with pytest.raises(ResultError, match="packets: true"):
        read(tmp_path / "nowhere.rec")
