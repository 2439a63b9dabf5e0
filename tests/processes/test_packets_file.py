"""The record's file: labtool makes it from the lines that the stages note, and the reader gives the lines back."""

import os
import random
import struct
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
import pytest

from scpslab.core.errors import ResultError
from scpslab.measure.packets import FATES, NEVER, read
from scpslab.plan.network import OFFER_BYTES, SIGHT_BYTES
from scpslab.setup import images, silent

EPOCH_NS = 10**12
ENTERING, LEAVING, ARRIVING = 0, 1, 2
TCP, UDP, ICMP = 6, 17, 1
# Two owners have groups, and one an address.
OWNERS = ("unknown", "kernel", "lab", "a", "b", "c")
GROUPS = {"lab": 1, "a": 77, "b": 78}
TOLD = (
    "".join(f"owner {name} {GROUPS.get(name, 0)}\n" for name in OWNERS)
    + f"address 10.0.0.9 99 {OWNERS.index('a')}\n"
    + f"address 10.0.0.9 0 {OWNERS.index('c')}\n"
    + f"direction hop forward {ENTERING} {LEAVING} {ARRIVING}\n"
)


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
    group: int = 0
    given: bytes = b""

    @property
    def wire(self) -> int:
        """Bytes on the wire."""
        return 20 + {TCP: 32, UDP: 8, ICMP: 0}[self.protocol] + self.payload

    @property
    def head(self) -> bytes:
        """The first bytes, as the stages note them."""
        if self.given:
            return self.given
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
        sizes = (ENTERING, packet.wire, packet.waited, packet.group, 0x0008, queued, len(packet.head), number)
        offers.append(struct.pack("<QQIIIIHBBI96s", *times, *sizes, packet.head))
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
    argv = [images.ensure_tools(silent) / "labtool", "record", "--epoch-ns", str(EPOCH_NS)]
    with ExitStack() as stack:
        for name, lines in (("offer", offers), ("sight", sights)):
            (folder / name).write_bytes(b"".join(lines))
            file = stack.enter_context((folder / name).open("rb")).fileno()
            os.set_inheritable(file, True)
            argv += [f"--{name}s", str(file), f"--{name}-count", str(len(lines))]
        done = subprocess.run(argv, input=TOLD.encode(), capture_output=True, close_fds=False, check=True)
        return done.stdout


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
    for column, name in {
        "wire_bytes": "wire",
        "waited_bytes": "waited",
        "id_": "id_",
        "bit_errors": "bit_errors",
    }.items():
        assert getattr(found, column).tolist() == [getattr(packet, name) for packet in packets], column
    assert [found.flows[flow].protocol for flow in found.flow] == [packet.protocol for packet in packets]
    assert found.is_tcp.tolist() == [packet.protocol == TCP for packet in packets]
    for row in np.flatnonzero(found.is_tcp).tolist():
        for name in ("sequence", "acknowledgement", "window", "flags", "payload"):
            assert getattr(found, name)[row] == getattr(packets[row], name), name
        assert found.flows[found.flow[row]].from_port == packets[row].port
    others = [packet.head[20:] for packet in packets if packet.protocol == ICMP]
    assert [bytes(head) for head in found.heads] == [head.ljust(64, b"\0")[:64] for head in others]


A, B, C, ROUTER = (bytes([10, 0, 0, last]) for last in (1, 2, 9, 3))


def ip_packet(protocol: int, source: bytes, target: bytes, rest: bytes, *, id_: int = 0, fragment: int = 0) -> bytes:
    """The head of a packet of IPv4."""
    fields = (0x45, 0, 20 + len(rest), id_, fragment, 64, protocol, 0)
    return struct.pack(">BBHHHBBH", *fields) + source + target + rest


def udp(source: bytes, target: bytes, from_port: int, to_port: int, **said: int) -> bytes:
    return ip_packet(UDP, source, target, struct.pack(">HHHH", from_port, to_port, 8, 0), **said)


def echo(source: bytes, target: bytes, type_: int, number: int) -> bytes:
    return ip_packet(ICMP, source, target, struct.pack(">BBHHH", type_, 0, 0, number, 1))


# Who sends what, from which control group, and whose it is. What nobody was told of stands before what tells.
OWNED = [
    (udp(B, A, 53, 4000), 0, "a"),  # an answer, of a socket that is nobody's
    (udp(A, B, 4000, 53), 77, "a"),
    (udp(A, B, 4000, 53), 0, "a"),  # at a later hop
    (udp(A, B, 4001, 53), 78, "b"),
    (udp(A, B, 4002, 53), 1, "lab"),
    (udp(A, B, 4003, 53), 0, "unknown"),
    (ip_packet(ICMP, ROUTER, A, bytes([11, 0, 0, 0, 0, 0, 0, 0]) + udp(A, B, 4001, 53)), 0, "b"),
    (ip_packet(ICMP, ROUTER, A, bytes([11, 0, 0, 0, 0, 0, 0, 0]) + udp(A, B, 4003, 53)), 0, "kernel"),
    (echo(A, B, 8, 7), 77, "a"),
    (echo(A, B, 8, 8), 78, "b"),
    (echo(B, A, 0, 8), 2, "b"),  # the kernel answers with a socket of its own
    (udp(A, B, 4005, 53), 2, "lab"),
    (udp(A, C, 4005, 99), 0, "a"),
    (udp(A, B, 4000, 53, id_=300, fragment=0x2000), 77, "a"),
    (ip_packet(UDP, A, B, bytes(20), id_=300, fragment=3), 0, "a"),
    (ip_packet(UDP, A, B, bytes(20), id_=301, fragment=3), 0, "unknown"),
    (udp(B, A, 53, 4000, id_=302, fragment=0x2000), 0, "a"),
    (ip_packet(UDP, B, A, bytes(20), id_=302, fragment=3), 0, "a"),
    (ip_packet(106, C, B, bytes(20)), 0, "c"),
    (ip_packet(106, B, C, bytes(20)), 0, "c"),
    (ip_packet(2, A, B, bytes(8)), 0, "kernel"),
]


def test_owners_are_told_by_sockets_answers_quotes_and_addresses(tmp_path):
    now = 0
    packets = []
    for head, group, _ in OWNED:
        now += 10**6
        packets.append(replace(drawn(1, 1)[0], offered_ns=now, group=group, given=head, fate="queue", left_ns=None))
    (path := tmp_path / "packets.rec").write_bytes(record(tmp_path, packets))

    (found,) = read(path)

    assert [found.flows[flow].owner for flow in found.flow] == [owner for _, _, owner in OWNED]


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
        whole.replace(b"owners unknown kernel lab a b c", b"owners unknown"),
        whole.replace(b"owners", b"others"),
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
    with pytest.raises(ResultError, match="packets: off"):
        read(tmp_path / "nowhere.rec")
