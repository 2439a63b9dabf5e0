"""Which packet of one link is which packet of the next: rows of the record's directions, joined by what is in their
headers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scpslab.measure.connections import Bools, Ints
from scpslab.measure.packets import NEVER, Packets
from scpslab.measure.record import Record

NONE = -1
# Of a hash of 64 bits (FNV-1a); what it joins is compared.
PRIME, BASIS = np.uint64(1099511628211), np.uint64(14695981039346656037)


@dataclass(frozen=True)
class Source:
    """Where each packet of a direction came from: the number of a direction, and a row there; -1: it began here."""

    direction: Ints
    row: Ints


def sources(record: Record, directions: Sequence[Packets], talks: Sequence[Sequence[Sequence[int]]]) -> list[Source]:
    """For each direction, the sources of its packets: those that arrived at its first node with the same headers, in
    their order, and not later. `talks`: conversation and way of each flow.
    """
    planned = [record.planned[packets.link, packets.direction] for packets in directions]
    keys = [_keys(packets, flows) for packets, flows in zip(directions, talks, strict=True)]
    found = []
    for place, packets in enumerate(directions):
        source = Source(np.full(len(packets), NONE), np.full(len(packets), NONE))
        for other, before in enumerate(directions):
            if planned[other].to != planned[place].from_ or other == place:
                continue
            free = np.flatnonzero(source.direction == NONE)
            came = np.flatnonzero(before.arrived & (before.arrived_ns != NEVER))
            mine, theirs = _joined(keys[place][free], keys[other][came])
            rows, others = free[mine], came[theirs]
            fits = _same(packets, rows, before, others) & (packets.offered_ns[rows] >= before.arrived_ns[others])
            source.direction[rows[fits]], source.row[rows[fits]] = other, others[fits]
        found.append(source)
    return found


def _keys(packets: Packets, flows: Sequence[Sequence[int]]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """What is in the headers of each packet, as a number."""
    of_flows = np.array([2 * talk + way for talk, way in flows] or [0], np.int64)
    columns = (
        of_flows[packets.flow],
        packets.id_,
        packets.sequence,
        packets.acknowledgement,
        packets.payload,
        packets.flags,
    )
    keys = np.full(len(packets), BASIS)
    for column in columns:
        keys = (keys ^ column.astype(np.uint64)) * PRIME
    return keys


def _joined(near: Ints | np.ndarray, far: Ints | np.ndarray) -> tuple[Ints, Ints]:
    """Rows of two lists of keys that belong together: the first of a key to the first, the second to the second."""
    near_order, far_order = np.argsort(near, kind="stable"), np.argsort(far, kind="stable")
    near_keys, far_keys = near[near_order], far[far_order]
    rank = np.arange(len(near_keys)) - np.searchsorted(near_keys, near_keys)
    at = np.searchsorted(far_keys, near_keys) + rank
    inside = at < len(far_keys)
    inside[inside] = far_keys[at[inside]] == near_keys[inside]
    return near_order[inside], far_order[at[inside]]


def _same(packets: Packets, rows: Ints, others: Packets, other_rows: Ints) -> Bools:
    columns = ("id_", "sequence", "acknowledgement", "payload", "flags")
    equal = [getattr(packets, name)[rows] == getattr(others, name)[other_rows] for name in columns]
    return np.asarray(np.logical_and.reduce(equal))
