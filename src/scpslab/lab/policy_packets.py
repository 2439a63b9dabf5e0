"""Datagrams of a workload of kind `policy`. All numbers are big endian.

A packet of data: segment 4 B, copy 4 B, time of sending 8 B (ns since the start), then the segment's data.
An answer: segment, copy and time of the packet that came, as they came; `below` 4 B, `arrived` 4 B, the number of holes
1 B, then of each hole the first and last segment, 4 B each.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from scpslab.kinds.workloads.policy.plan import DATA_HEADER_BYTES

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
    return Answer(
        segment,
        copy,
        sent_ns,
        below,
        arrived,
        tuple((first, last) for first, last in _HOLE.iter_unpack(datagram[_ANSWER.size :])),
    )


def content(seed: int, segment: int, size: int) -> bytes:
    """The data of a segment."""
    return hashlib.shake_128(f"{seed} {segment}".encode()).digest(size)


def holes_of(missing: Sequence[bool], below: int, end: int) -> tuple[tuple[int, int], ...]:
    """The first holes from `below` up to `end`: ranges of segments that are missing, first and last."""
    found: list[tuple[int, int]] = []
    at = below
    while at < end and len(found) < MOST_HOLES:
        if missing[at]:
            last = at
            while last + 1 < end and missing[last + 1]:
                last += 1
            found.append((at, last))
            at = last
        at += 1
    return tuple(found)
