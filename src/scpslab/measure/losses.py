"""Which packets were lost, where and why, and when their bytes were sent again, from the record of a cell's packets.

Every step is linear in the packets, but for sorting.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from scpslab.core.addresses import end
from scpslab.measure.connections import ACK, FIN, RST, SYN, TCP, UDP, Bools, Ints, unwrapped
from scpslab.measure.packets import NEVER, Flow, Packets
from scpslab.measure.record import Record, dropped, no_ints, wire_ns
from scpslab.measure.traces import pieces
from scpslab.plan.links import CORRUPT, FLIPPED, OUTAGE, POLICED, POLICY, QUEUE, Direction

ARRIVAL = "arrival"
SUPERFLUOUS = "superfluous"
FLAG_LETTERS = ((SYN, "S"), (FIN, "F"), (RST, "R"), (ACK, "A"))
ICMP, ICMPV6, NOBODY = 1, 58, -1
# 105 is compressed SCPS-TP (CCSDS 714.0-B-2), whose fields stand relative to those of earlier packets.
PROTOCOLS = {ICMP: "icmp", TCP: "tcp", UDP: "udp", ICMPV6: "icmpv6", 105: "scps-tp compressed", 106: "scps-tp"}
Place = tuple[str, str]
Repair = Literal["repaired", "never", "no data", "arrived before", "unknown"]


@dataclass(frozen=True)
class Lost:
    """A packet that did not arrive as it was sent.

    `t_s` since the epoch; `place`: `queue` or `arrival` (the end of the link); `packet` counts those that the direction
    was offered, from 1; `seq` counts from the first payload byte (a SYN has -1), None without a header of TCP;
    `payload_bytes` None for a packet that is not TCP or UDP; `sent_s`: when this link was offered the packet. `frame`
    counts as Wireshark does, in `capture`, if a capture of the cell has the packet. `repair`: `repaired` at
    `repaired_s`, when the last of its bytes was sent again over this link in packets that arrived; `never`; `no data`:
    it carried nothing that needs repair; `arrived before`: it was a copy of bytes that had arrived; `unknown`: of a
    format not read here.
    """

    t_s: float
    cause: str
    link: str
    direction: str
    place: str
    packet: int
    ip_bytes: int
    protocol: str
    source: str
    destination: str
    flags: str = ""
    seq: int | None = None
    payload_bytes: int | None = None
    sent_s: float | None = None
    repair: Repair = "unknown"
    repaired_s: float | None = None
    repaired_packet: int | None = None
    capture: str = ""
    frame: int | None = None
    repaired_frame: int | None = None


def origins(before: Ints, before_ns: Ints, later: Ints, later_ns: Ints, *, is_whole: bool = False) -> Ints:
    """For each packet at a place, the one at an earlier place that it was: of those of its identity (a row of numbers)
    the one of its rank, if there are as many, else the last one by then; NOBODY without one.

    `is_whole`: the earlier place saw all packets, so that one of which it saw fewer never was there.
    """
    names, t_ns = np.concatenate([before, later]), np.concatenate([before_ns, later_ns])
    order = np.lexsort((t_ns, *names.T))
    is_other = np.any(np.diff(names[order], axis=0) != 0, axis=1)
    group = np.cumsum(np.concatenate([np.zeros(len(order[:1]), np.int64), is_other]))
    is_before = order < len(before)
    last = np.maximum.accumulate(np.where(is_before, np.arange(len(order)), NOBODY))
    found = np.where((last != NOBODY) & (group[last] == group), order[last], NOBODY)
    had, has = (np.bincount(group[side], minlength=len(order))[group] for side in (is_before, ~is_before))
    found[~is_before & (had == has)] = order[is_before & (had == has)]
    if is_whole:
        found[had < has] = NOBODY
    of_later = np.empty(len(order), np.int64)
    of_later[order] = found
    return of_later[len(before) :]


class OfFlow:
    """The packets of one flow of TCP over one direction: their `rows`, the bytes [left, right), and why each was lost
    there ("": it was not). A SYN or FIN is a byte (RFC 9293 §3.4).
    """

    def __init__(self, hop: OfHop, rows: Ints, base: int) -> None:
        packets = hop.packets
        self.hop, self.rows = hop, rows
        flags = packets.flags[rows].astype(np.int64)
        self.payload = packets.payload[rows]
        self.left = unwrapped(packets.sequence[rows], base)
        self.right = self.left + self.payload + (flags & SYN != 0) + (flags & FIN != 0)

    def matching(self, later: OfFlow) -> Ints:
        """For each packet at another place, the one here that it was; NOBODY without one."""
        if later.hop is self.hop:
            return np.arange(len(self.rows))
        return origins(self.identity, self.offered_ns, later.identity, later.offered_ns)

    @property
    def identity(self) -> Ints:
        """Numbers that no router changes, a row for each packet."""
        return np.stack([self.left, self.right, self.hop.packets.id_[self.rows]], axis=1)

    @property
    def offered_ns(self) -> Ints:
        """When each was offered."""
        return self.hop.packets.offered_ns[self.rows]


class OfHop:
    """One direction of a link: its packets, and why each was lost there ("" for those that were not)."""

    def __init__(self, packets: Packets, way: Direction) -> None:
        self.packets, self.way = packets, way
        self.cause = np.full(len(packets), "", dtype="<U8")
        for cause in (CORRUPT, OUTAGE, POLICY, FLIPPED, POLICED):
            self.cause[packets.had(cause)] = cause
        self.cause[dropped(packets, way)] = QUEUE

    @cached_property
    def at_ns(self) -> Ints:
        """When each packet was lost, if it was: offered to the queue, else at the end of the link."""
        arrived_ns = self.packets.arrived_ns
        ended_ns = np.where(arrived_ns == NEVER, wire_ns(self.packets), arrived_ns)
        return np.where(np.isin(self.cause, (QUEUE, POLICED)), self.packets.offered_ns, ended_ns)

    @cached_property
    def rows(self) -> dict[Flow, Ints]:
        """The packets of each flow, whoever owns them: not every socket of a connection is a program's."""
        named = [replace(flow, owner="") for flow in self.packets.flows]
        flows = list(dict.fromkeys(named))
        number = {flow: place for place, flow in enumerate(flows)}
        of_flows = np.array([number[flow] for flow in named], np.int64)[self.packets.flow]
        order = np.argsort(of_flows, kind="stable")
        bounds = np.searchsorted(of_flows[order], np.arange(len(flows) + 1))
        return {flow: order[bounds[place] : bounds[place + 1]] for place, flow in enumerate(flows)}


class Fates:
    """What became of the packets of a record."""

    def __init__(self, record: Record) -> None:
        self.hops = {place: OfHop(packets, record.planned[place]) for place, packets in record.by_place.items()}
        self._ends = record.addresses
        self._of_flows: dict[Flow, dict[Place, OfFlow]] = {}

    def of_flow(self, flow: Flow) -> dict[Place, OfFlow]:
        """A flow of TCP at each direction that it passes, counted from its first byte at the first of them."""
        if flow not in self._of_flows:
            rows = ((place, hop, hop.rows.get(flow, no_ints())) for place, hop in self.hops.items())
            tcp = [(place, hop, mine[hop.packets.is_tcp[mine]]) for place, hop, mine in rows]
            there = [(place, hop, mine) for place, hop, mine in tcp if len(mine)]
            begins = [(int(hop.packets.offered_ns[mine[0]]), _first_byte(hop.packets, mine)) for _, hop, mine in there]
            base = min(begins)[1] if begins else 0
            self._of_flows[flow] = {place: OfFlow(hop, mine, base) for place, hop, mine in there}
        return self._of_flows[flow]

    def sent_by(self, node: str) -> tuple[Flow, OfFlow] | None:
        """The flow of TCP of which a node offers one of its links the most payload, there; None where it has none."""
        own = [(place, flow) for place, hop in self.hops.items() if hop.way.from_ == node for flow in hop.rows]
        sent = [(flow, one) for place, flow in own if (one := self.of_flow(flow).get(place)) is not None]
        return max(sent, key=lambda one: int(one[1].payload.sum()), default=None)

    def last_of(self, flow: Flow) -> OfFlow:
        """The flow on the last link of its way: to the node with its address, else where most of it arrived."""
        there = self.of_flow(flow)
        begins = {self.hops[place].way.from_ for place in there}
        ends = [one for place, one in there.items() if self.hops[place].way.to not in begins] or list(there.values())
        its = [one for one in ends if self._ends.get(flow.to_ip) == one.hop.way.to]
        return max(its or ends, key=lambda one: int((one.hop.cause[one.rows] == "").sum()))

    def causes(self, flow: Flow, at: OfFlow) -> list[str]:
        """Why each packet of a flow at one direction was lost, there or on a later one; "" for those that were not."""
        found = at.hop.cause[at.rows].copy()
        for later in self.of_flow(flow).values():
            origin = at.matching(later)
            is_lost = (later.hop.cause[later.rows] != "") & (origin != NOBODY)
            found[origin[is_lost]] = later.hop.cause[later.rows][is_lost]
        return [str(cause) for cause in found]

    def lost(self) -> Iterator[Lost]:
        """All losses, direction by direction in the order of their offers."""
        for place, hop in self.hops.items():
            repairs = self._repairs(hop)
            for row in np.flatnonzero(hop.cause != "").tolist():
                yield _lost(place, hop, row, *repairs.get(row, ("unknown", NOBODY, None)))

    def _repairs(self, hop: OfHop) -> dict[int, tuple[Repair, int, int | None]]:
        """For each lost packet with a header of TCP its repair, the row that completed it, and its first byte."""
        found: dict[int, tuple[Repair, int, int | None]] = {}
        place = (hop.packets.link, hop.packets.direction)
        for flow, rows in hop.rows.items():
            if not np.any(hop.cause[rows] != "") or place not in self.of_flow(flow):
                continue
            here, last = self.of_flow(flow)[place], self.last_of(flow)
            arrived = np.zeros(len(here.rows), np.bool_)
            origin = here.matching(last)
            arrived[origin[(last.hop.cause[last.rows] == "") & (origin != NOBODY)]] = True
            lost = np.flatnonzero(hop.cause[here.rows] != "")
            for index, (repair, by) in zip(lost.tolist(), _completed(here, arrived, lost), strict=True):
                row = NOBODY if by == NOBODY else int(here.rows[by])
                found[int(here.rows[index])] = (repair, row, int(here.left[index]))
        return found


def _completed(here: OfFlow, arrived: Bools, lost: Ints) -> list[tuple[Repair, int]]:
    """For each lost packet, whether all its bytes were sent in packets that arrived, and the one that completed them:
    of each byte the first such packet, of these the last.
    """
    edges = np.unique(np.concatenate([here.left, here.right]))
    low, high = np.searchsorted(edges, here.left), np.searchsorted(edges, here.right)
    never = len(here.rows)
    first = np.full(len(edges), never)
    packet, piece = pieces(low[arrived], high[arrived])
    np.minimum.at(first, piece, np.flatnonzero(arrived)[packet])
    packet, piece = pieces(low[lost], high[lost])
    completes = np.full(len(lost), NOBODY)
    np.maximum.at(completes, packet, first[piece])
    found: list[tuple[Repair, int]] = []
    for index, by in zip(lost.tolist(), completes.tolist(), strict=True):
        if by == NOBODY:
            found.append(("no data", NOBODY))
        elif by == never:
            found.append(("never", NOBODY))
        else:
            found.append(("arrived before", NOBODY) if by < index else ("repaired", by))
    return found


def resends(left: Ints, right: Ints, causes: Sequence[str]) -> list[tuple[int, str]]:
    """Of data packets [left, right) in order of time those whose first byte was sent before, and the cause of each: why
    the latest earlier copy was lost, or `superfluous` if an earlier copy was not lost (""), whichever it was.
    """
    edges = np.unique(np.concatenate([left, right]))
    low, high = np.searchsorted(edges, left), np.searchsorted(edges, right)
    packet, piece = pieces(low, high)
    order = np.lexsort((packet, piece))
    packet, piece = packet[order], piece[order]
    survived = np.array([cause == "" for cause in causes], np.bool_)
    first = np.full(len(edges), len(left))
    np.minimum.at(first, piece[survived[packet]], packet[survived[packet]])
    before = np.full(len(left), NOBODY)
    is_first_piece = piece == low[packet]
    follows = np.flatnonzero(is_first_piece[1:] & (piece[1:] == piece[:-1])) + 1
    before[packet[follows]] = packet[follows - 1]
    again = np.flatnonzero(before != NOBODY)
    return [(index, SUPERFLUOUS if first[low[index]] < index else causes[before[index]]) for index in again.tolist()]


def _first_byte(packets: Packets, rows: Ints) -> int:
    """Sequence number of a flow's first payload byte: the one after its SYN, else the first seen."""
    syn = rows[packets.flags[rows] & SYN != 0]
    return (int(packets.sequence[syn[0]]) + 1) % 2**32 if len(syn) else int(packets.sequence[rows[0]])


def _lost(place: Place, hop: OfHop, row: int, repair: Repair, repaired: int, seq: int | None) -> Lost:
    packets = hop.packets
    flow, cause = packets.flows[packets.flow[row]], str(hop.cause[row])
    has_ports = seq is not None or (flow.protocol == UDP and flow.to_port > 0)
    flags = int(packets.flags[row]) if seq is not None else 0
    return Lost(
        t_s=int(hop.at_ns[row]) / 1e9,
        cause=cause,
        link=place[0],
        direction=place[1],
        place=QUEUE if cause in (QUEUE, POLICED) else ARRIVAL,
        packet=row + 1,
        ip_bytes=int(packets.wire_bytes[row]) - hop.way.overhead_bytes,
        protocol=PROTOCOLS.get(flow.protocol, str(flow.protocol)),
        source=end(flow.from_ip, flow.from_port) if has_ports else flow.from_ip,
        destination=f"{flow.to_ip}:{flow.to_port}" if has_ports else flow.to_ip,
        flags="".join(letter for bit, letter in FLAG_LETTERS if flags & bit),
        seq=seq,
        payload_bytes=int(packets.payload[row]) if has_ports else None,
        sent_s=int(packets.offered_ns[row]) / 1e9,
        repair="never" if flow.protocol in (ICMP, ICMPV6) else repair,
        repaired_s=None if repaired == NOBODY else int(packets.offered_ns[repaired]) / 1e9,
        repaired_packet=None if repaired == NOBODY else repaired + 1,
    )
