"""A transfer of datagrams whose sender asks a policy, somebody's Python code, what to send and when.

The lab itself is both ends: it sends, receives, compares and counts. The policy is a program without rights in the
sending node (lab/confined.py), which hears of starts, acknowledgements and timers, and answers each with the segments
to send and the time to be woken.

Datagrams, all numbers big endian. A packet of data: segment 4 B, copy 4 B, time of sending 8 B (ns since the start),
then the segment's data. An answer: segment, copy and time of the packet that came, as they came; `below` 4 B, `arrived`
4 B, the number of holes 1 B, then of each hole the first and last segment, 4 B each.
"""

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scpslab.core.strict_json import JsonObject
from scpslab.lab.confined import Confined, Ends, shown
from scpslab.lab.loop import SECOND_NS

from scpslab.kinds.workloads.policy import plan as planned
from scpslab.kinds.workloads.policy.plan import DATA_HEADER_BYTES

MOST_AT_ONCE = 10_000


class Policy(Ends[planned.Policy], kind="policy"):
    """Completed when every segment has arrived as it was sent."""

    def open(self) -> None:
        """Opens the sockets, and starts the policy."""
        spec = self.spec
        self.segments = -(-spec.bytes_ // spec.segment_bytes)
        self.missing = [True] * self.segments
        self.was_sent = [False] * self.segments
        self.below = self.end = self.arrived = self.copies = self.resent = 0
        self.receiver = self.open_socket(spec.to, spec.to_ip, spec.port, self._data)
        self.sender = self.open_socket(spec.from_, spec.from_ip, 0, self._ack)
        given = {"segments": self.segments, "packet_bytes": spec.packet_bytes}
        self.policy = Confined(self, spec.from_, "Policy", given, self._do)

    def start(self) -> None:
        """The first event."""
        if not self.outcome:
            self.begun()
            self.policy.call("on_start")

    def _do(self, said: JsonObject) -> None:
        send = said.get("send")
        listed = send if isinstance(send, list) else [None]
        known = [one for one in listed if type(one) is int and 0 <= one < self.segments]
        if len(listed) > MOST_AT_ONCE or len(known) < len(listed):
            raise ValueError(
                f"found segments {shown(send, 80)}; expected at most {MOST_AT_ONCE} of 0 to {self.segments - 1}"
            )
        for segment in known:
            if self.may_send(self.copies):
                self._send(segment)

    def _send(self, segment: int) -> None:
        data = Data(segment, self.copies, self.context.now_ns() - self.started_ns, self._content(segment))
        self.copies += 1
        self.resent += self.was_sent[segment]
        self.was_sent[segment] = True
        self.send(self.sender, write_data(data), (self.spec.to_ip, self.spec.port))

    def _content(self, segment: int) -> bytes:
        size = min(self.spec.segment_bytes, self.spec.bytes_ - segment * self.spec.segment_bytes)
        return content(self.spec.payload_seed, segment, size)

    def _data(self, datagram: bytes, source: Any) -> None:
        data = read_data(datagram)
        # Whatever else comes to the port is no part of the transfer.
        if data is None or data.segment >= self.segments or data.content != self._content(data.segment):
            return
        if self.missing[data.segment]:
            self.missing[data.segment] = False
            self.arrived += 1
        self.end = max(self.end, data.segment + 1)
        while self.below < self.segments and not self.missing[self.below]:
            self.below += 1
        holes = holes_of(self.missing, self.below, self.end)
        answer = Answer(data.segment, data.copy, data.sent_ns, self.below, self.arrived, holes)
        self.receiver.sendto(write_answer(answer), source)
        if self.arrived == self.segments:
            self.complete(segments=self.segments, sent_packets=self.copies, resent_packets=self.resent)

    def _ack(self, datagram: bytes, _source: Any) -> None:
        answer = read_answer(datagram)
        if answer is not None:
            fields: JsonObject = {"segment": answer.segment, "copy": answer.copy, "sent": answer.sent_ns / SECOND_NS}
            fields |= {"below": answer.below, "arrived": answer.arrived, "holes": [list(hole) for hole in answer.holes]}
            self.policy.call("on_ack", fields)

    def so_far(self) -> JsonObject:
        """Its segments and packets."""
        return {"segments": self.segments, "arrived": self.arrived, "sent_packets": self.copies}


_DATA = struct.Struct(">IIQ")
_ANSWER = struct.Struct(">IIQIIB")
_HOLE = struct.Struct(">II")
MOST_HOLES = 64
assert _DATA.size == DATA_HEADER_BYTES


@dataclass(frozen=True)
class Data:
    """A packet of data: `copy` counts all packets of the transfer from 0."""

    segment: int
    copy: int
    sent_ns: int
    content: bytes


@dataclass(frozen=True)
class Answer:
    """What the receiver answers to each packet: which packet came, that all segments before `below` have arrived, how
    many have, and the holes above.
    """

    segment: int
    copy: int
    sent_ns: int
    below: int
    arrived: int
    holes: tuple[tuple[int, int], ...]


def write_data(data: Data) -> bytes:
    """The datagram."""
    return _DATA.pack(data.segment, data.copy, data.sent_ns) + data.content


def read_data(datagram: bytes) -> Data | None:
    """The packet in a datagram; None for anything else."""
    if len(datagram) < _DATA.size:
        return None
    segment, copy, sent_ns = _DATA.unpack_from(datagram)
    return Data(segment, copy, sent_ns, datagram[_DATA.size :])


def write_answer(answer: Answer) -> bytes:
    """The datagram; of more than 64 holes the first ones are in it."""
    holes = answer.holes[:MOST_HOLES]
    head = _ANSWER.pack(answer.segment, answer.copy, answer.sent_ns, answer.below, answer.arrived, len(holes))
    return head + b"".join(_HOLE.pack(*hole) for hole in holes)


def read_answer(datagram: bytes) -> Answer | None:
    """The answer in a datagram; None for anything else."""
    if len(datagram) < _ANSWER.size:
        return None
    segment, copy, sent_ns, below, arrived, holes = _ANSWER.unpack_from(datagram)
    if len(datagram) != _ANSWER.size + holes * _HOLE.size:
        return None
    ranges = tuple((first, last) for first, last in _HOLE.iter_unpack(datagram[_ANSWER.size :]))
    return Answer(segment, copy, sent_ns, below, arrived, ranges)


def content(seed: int, segment: int, size: int) -> bytes:
    """The data of a segment."""
    return hashlib.shake_128(f"{seed} {segment}".encode()).digest(size)


def holes_of(missing: Sequence[bool], below: int, end: int) -> tuple[tuple[int, int], ...]:
    """The first holes from `below` up to `end`: ranges of segments that are missing, first and last."""
    holes: list[tuple[int, int]] = []
    at = below
    while at < end and len(holes) < MOST_HOLES:
        if missing[at]:
            last = at
            while last + 1 < end and missing[last + 1]:
                last += 1
            holes.append((at, last))
            at = last
        at += 1
    return tuple(holes)
