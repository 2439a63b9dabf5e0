"""All packets of a cell as one table, direction after direction: a row is a packet at a link, and its number is its
name in the page. Who talks to whom: conversations, each of two ends. And columns of whole numbers as bytes that
compress well, the same on every machine; page/data.js reads them (docs/plan-format.md).
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from scpslab.core.addresses import end
from scpslab.measure import traces
from scpslab.measure.connections import ACK, SYN, Bools, Ints, unwrapped
from scpslab.measure.losses import NOBODY, Fates, origins
from scpslab.measure.packets import FATES, HAS_ARRIVED, HAS_LEFT, NEVER, TCP_HEADERS, Flow, Packets
from scpslab.measure.record import Record, dropped, no_ints, wire_ns
from scpslab.plan.links import QUEUE

# How a column's numbers stand in the file: as they are; minus the row before; minus the flow's row before; the same,
# minus the payload of that row too.
How = Literal["value", "step", "flow", "stream"]
MOST_BYTES = 8
LEVEL = 9


@dataclass(frozen=True)
class Column:
    """Numbers int64[n], and how they are written. `known`: of a packet that was in an earlier row, its number there is
    subtracted in place of that.
    """

    numbers: Ints
    how: How = "value"
    known: Ints | None = None


class Columns:
    """Tables of columns in one sequence of bytes."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._bytes = 0

    def table(self, columns: Mapping[str, Column]) -> dict[str, object]:
        """Adds a table; returns its number of rows, and of each column name, way of writing, width in bytes, place, and
        whether numbers of earlier rows are known.

        A table with columns of flows begins with the columns `before`, `flow` and `payload`.
        """
        rows = len(next(iter(columns.values())).numbers)
        found: list[list[object]] = []
        for name, column in columns.items():
            written = _written(column, columns)
            if column.known is not None:
                before = columns["before"].numbers
                is_known = (before >= 0) & (before < np.arange(rows))
                written = np.where(is_known, column.numbers - column.known[before], written)
            planes, width = _planes(written)
            found.append([name, column.how, width, self._bytes, int(column.known is not None)])
            self._parts.append(planes)
            self._bytes += len(planes)
        return {"rows": rows, "columns": found}

    def packed(self) -> bytes:
        """All tables, compressed."""
        return gzip.compress(b"".join(self._parts), LEVEL, mtime=0)


def _written(column: Column, others: Mapping[str, Column]) -> Ints:
    numbers = column.numbers
    if column.how == "value":
        return numbers
    if column.how == "step":
        return np.diff(numbers, prepend=0)
    flow = others["flow"].numbers
    order = np.argsort(flow, kind="stable")
    before = np.concatenate([[0], numbers[order][:-1]])
    if column.how == "stream":
        before[1:] += others["payload"].numbers[order][:-1]
    before[np.flatnonzero(np.diff(flow[order], prepend=-1))] = 0
    steps = np.empty_like(numbers)
    steps[order] = numbers[order] - before
    return steps


def _planes(numbers: Ints) -> tuple[bytes, int]:
    """Signed numbers of as few bytes as all of them fit into: all first bytes, the least significant ones, then all
    second ones, and so on.
    """
    width = _width(numbers)
    whole: npt.NDArray[np.uint8] = numbers.astype("<i8").view(np.uint8).reshape(-1, MOST_BYTES)
    return np.ascontiguousarray(whole[:, :width].T).tobytes(), width


def _width(numbers: Ints) -> int:
    """How many bytes: none where all numbers are 0."""
    least, most = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    # A bit more is for the sign.
    return (max(most, ~least).bit_length() + 8) // 8 if least or most else 0


ARP, IPV6 = 0x0806, 0x86DD
# Numbers of protocols of IP (IANA, and the reference implementation's: scps-np.md, header).
PROTOCOLS = {1: "ICMP", 2: "IGMP", 6: "TCP", 17: "UDP", 58: "ICMPv6"}
PROTOCOLS |= {105: "SCPS-TP, compressed", 106: "SCPS-TP", 118: "SCPS-NP"}


# Beside a packet's fate and what happened to it: its bytes begin below the highest that its sender has sent before.
IS_AGAIN = 0x40
# Causes of loss as people say them; what became of a packet, by its fate: the cause, and what the page says; and what
# was found of a repair, which the page knows by its place.
CAUSES = {
    QUEUE: "queue full",
    "corrupt": "bit errors",
    "outage": "link out",
    "policy": "drop list",
    "policed": "policer",
}
OTHER_FATES = {"flipped": "arrived with wrong bits", "unseen": "on its way at the end"}
BECAME = [(fate, f"lost: {CAUSES[fate]}") if fate in CAUSES else (None, OTHER_FATES.get(fate, fate)) for fate in FATES]
REPAIRS = ("repaired", "never", "no data", "arrived before", "unknown")


@dataclass
class Conversation:
    """Packets of one owner between two ends. `way`: 0 from `ends[0]` to `ends[1]`, as its first packet, 1 back.

    By way: `first` and `last`, the directions (their numbers) at its sender and at its receiver; `payload` bytes that
    the first one was offered.
    """

    owner: str
    protocol: str
    is_tcp: bool
    ends: tuple[str, str]
    nodes: list[str] = field(default_factory=lambda: ["", ""])
    first: list[int] = field(default_factory=lambda: [-1, -1])
    last: list[int] = field(default_factory=lambda: [-1, -1])
    payload: list[int] = field(default_factory=lambda: [0, 0])
    base: list[int] = field(default_factory=lambda: [0, 0])

    @property
    def data_way(self) -> int:
        """The way of most of its payload."""
        return int(self.payload[1] > self.payload[0])


def conversations(record: Record, directions: Sequence[Packets]) -> tuple[list[Conversation], list[list[list[int]]]]:
    """The conversations in the order of their first packets; and for each direction, for each of its flows, the number
    of the conversation and its way.
    """
    found: dict[tuple[object, ...], dict[object, int]] = {}
    talks: list[Conversation] = []
    openings = [_openings(one) for one in directions]
    numbers: list[list[list[int]]] = [[[0, 0] for _ in packets.flows] for packets in directions]
    for _, place, number in sorted(_firsts(directions)):
        flow = directions[place].flows[number]
        near, far = end_text(flow.from_ip, flow.from_port), end_text(flow.to_ip, flow.to_port)
        # With ports it is one, whoever was seen to send at a link; but a gateway has a connection on each of its sides.
        kind = ("" if flow.from_port else flow.owner, flow.protocol, flow.type_, frozenset((near, far)))
        opened, its = openings[place].get(number), found.setdefault(kind, {})
        known = next((talk for other, talk in its.items() if opened == other or None in (opened, other)), len(talks))
        if its.setdefault(opened, known) == len(talks):
            talks.append(Conversation(flow.owner, protocol_text(flow), flow.protocol in TCP_HEADERS, (near, far)))
        way = int(talks[known].ends[0] != near)
        numbers[place][number] = [known, way]
        _seen(talks[known], way, record, directions, place, number)
    return talks, numbers


def _openings(packets: Packets) -> dict[int, int]:
    """By flow: the first sequence number of who opened its connection, where that was seen."""
    rows = np.flatnonzero(packets.is_tcp & (packets.flags & SYN != 0))[::-1]
    is_answer = packets.flags[rows] & ACK != 0
    first = np.where(is_answer, packets.acknowledgement[rows].astype(np.int64) - 1, packets.sequence[rows])
    return dict(zip(packets.flow[rows].tolist(), (first % 2**32).tolist(), strict=True))


def _firsts(directions: Sequence[Packets]) -> Iterator[tuple[int, int, int]]:
    """The first packet of each flow: when, and the numbers of direction and flow."""
    for place, packets in enumerate(directions):
        flows, rows = np.unique(packets.flow, return_index=True)
        yield from ((int(packets.offered_ns[row]), place, int(flow)) for flow, row in zip(flows, rows, strict=True))


def _seen(talk: Conversation, way: int, record: Record, directions: Sequence[Packets], place: int, number: int) -> None:
    """Where a conversation's packets begin and end: at the node that has the address, else where they are seen first
    and last.
    """
    packets, before = directions[place], directions[talk.last[way]]
    flow, planned = packets.flows[number], record.planned[packets.link, packets.direction]
    at_sender = record.addresses.get(flow.from_ip) == planned.from_
    if talk.first[way] < 0 or at_sender:
        mine = packets.flow == number
        talk.first[way] = place
        talk.nodes[way] = planned.from_
        talk.payload[way] = int(packets.payload[mine].sum())
    receiver = record.addresses.get(flow.to_ip)
    if receiver == planned.to or talk.last[way] < 0 or receiver != record.planned[before.link, before.direction].to:
        talk.last[way] = place
        talk.nodes[1 - way] = talk.nodes[1 - way] or planned.to


def end_text(ip: str, port: int) -> str:
    """An end as people write it."""
    return end(ip, port) if port else ip


def protocol_text(flow: Flow) -> str:
    """The protocol of a flow, in a word."""
    if flow.type_ == ARP:
        return "ARP"
    name = PROTOCOLS.get(flow.protocol, f"protocol {flow.protocol}")
    return f"{name}, IPv6" if flow.type_ == IPV6 else name


class Rows:
    """Columns int64[n] over all rows. `starts`: the first row of each direction, and n; `flow`: twice the conversation,
    and its way; `before`: the row of the packet at the link before, NOBODY where it began.

    `sequence` and `acknowledgement` count from the first byte of data and do not wrap; they are 0 where there are none.
    `lost`: rows in the order of time, `lost_ns` the times; `repair`: places in REPAIRS; `repaired_by`: rows, or NOBODY.
    """

    def __init__(
        self, record: Record, talks: Sequence[Conversation], numbers: Sequence[Sequence[Sequence[int]]]
    ) -> None:
        self.directions, self._talks = list(record.by_place.values()), talks
        self._planned = [record.planned[one.link, one.direction] for one in self.directions]
        self.starts = np.cumsum([0, *map(len, self.directions)])
        flows = [np.array([2 * talk + way for talk, way in its] or [0], np.int64) for its in numbers]
        self.flow = self._all(lambda place, one: flows[place][one.flow])
        self.offered_ns, self.arrived_ns = (self._all(_of(name)) for name in ("offered_ns", "arrived_ns"))
        self.payload, self.wire_bytes = (self._all(_of(name)) for name in ("payload", "wire_bytes"))
        self.waited_bytes = self._all(_of("waited_bytes"))
        self.flags = self._all(lambda _, one: np.where(one.is_tcp, one.flags, 0).astype(np.int64))
        is_dropped = self._all(lambda place, one: dropped(one, self._planned[place]))
        self.fate = np.where(is_dropped, FATES.index(QUEUE), self._all(_of("fate")))
        self.sequence, self.acknowledgement = self._all(_of("sequence")), self._all(_of("acknowledgement"))
        self.before = self._befores()
        self._groups = dict(self._grouped())
        self.is_again = np.zeros(len(self), np.bool_)
        self.sample = np.zeros(len(self), np.int64)
        self._count_from_first(talks)
        for number, talk in enumerate(talks):
            self._sampled(number, talk)
        self._lose(record)

    def __len__(self) -> int:
        """How many packets were offered to links."""
        return int(self.starts[-1])

    def _all(self, of: Callable[[int, Packets], Ints | Bools]) -> Ints:
        return np.concatenate([of(place, one).astype(np.int64) for place, one in enumerate(self.directions)])

    def _befores(self) -> Ints:
        """A packet was the one at the link before that arrived at its node with the same headers, and not later."""
        same = [self._all(_of(name)) for name in ("id_", "sequence", "acknowledgement", "payload", "flags")]
        names, found = np.stack([self.flow, *same], axis=1), np.full(len(self), NOBODY)
        for place, later in enumerate(self._planned):
            mine = np.arange(self.starts[place], self.starts[place + 1])
            for other, before in enumerate(self.directions):
                if self._planned[other].to != later.from_ or other == place:
                    continue
                came = self.starts[other] + np.flatnonzero(before.arrived & (before.arrived_ns != NEVER))
                free = mine[(found[mine] == NOBODY) & np.isin(self.flow[mine], np.unique(self.flow[came]))]
                origin = origins(names[came], self.arrived_ns[came], names[free], self.offered_ns[free])
                row = np.concatenate([came, [NOBODY]])[origin]
                fits = (row != NOBODY) & (self.offered_ns[free] >= self.arrived_ns[row])
                found[free[fits]] = row[fits]
        return found

    def _grouped(self) -> Iterator[tuple[tuple[int, int], Ints]]:
        """The rows of each flow at each direction."""
        place = np.repeat(np.arange(len(self.directions)), np.diff(self.starts))
        keys = self.flow * len(self.directions) + place
        order = np.argsort(keys, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
            if len(rows):
                yield (int(self.flow[rows[0]]), int(place[rows[0]])), rows

    def of(self, flow: int, direction: int) -> Ints:
        """The rows of a flow at a direction, in their order."""
        return self._groups.get((flow, direction), no_ints())

    def came(self, flow: int) -> Ints:
        """The rows of a flow that reached its receiver, in the order in which they did."""
        rows = self.of(flow, self._talks[flow // 2].last[flow % 2])
        rows = rows[(self.arrived_ns[rows] != NEVER) & ~self.is_lost(rows)]
        return np.asarray(rows[np.argsort(self.arrived_ns[rows], kind="stable")])

    def _count_from_first(self, talks: Sequence[Conversation]) -> None:
        for number, talk in enumerate(talks):
            firsts = [self.of(2 * number + way, talk.first[way])[:1] for way in (0, 1)]
            is_syn = [int(bool(self.flags[rows].any() and self.flags[rows][0] & SYN)) for rows in firsts]
            talk.base = [int(self.sequence[rows].sum()) + syn for rows, syn in zip(firsts, is_syn, strict=True)]
        for (flow, _), rows in self._groups.items():
            base, mine = talks[flow // 2].base, rows[self.flags[rows] != 0]
            acking = mine[self.flags[mine] & ACK != 0]
            self.sequence[mine] = unwrapped(self.sequence[mine], base[flow % 2])
            self.acknowledgement[acking] = unwrapped(self.acknowledgement[acking], base[1 - flow % 2])
            highest = np.maximum.accumulate(self.sequence[mine] + self.payload[mine])
            self.is_again[mine[1:]] = (self.sequence[mine[1:]] < highest[:-1]) & (self.payload[mine[1:]] > 0)

    def _sampled(self, number: int, talk: Conversation) -> None:
        """`sample`: of each acknowledgement at its receiver one more than the row of the newest packet of data that one
        of them has timed until then.
        """
        way = talk.data_way
        data = self.of(2 * number + way, talk.first[way])
        data = data[(self.payload[data] > 0) & (self.flags[data] & (SYN | ACK) == ACK)]
        back = self.of(2 * number + 1 - way, talk.last[1 - way])
        acks = self.came(2 * number + 1 - way)
        acks = acks[self.flags[acks] & (SYN | ACK) == ACK]
        if not len(data) or not len(acks):
            return
        end = self.sequence[data] + self.payload[data]
        sent_ns, heard_ns = self.offered_ns[data].astype(np.float64), self.arrived_ns[acks].astype(np.float64)
        ack = np.minimum(self.acknowledgement[acks], end.max())
        seen = traces.Flow(
            sent_ns, end - self.payload[data], end, self.is_again[data], heard_ns, ack, ack, False, no_ints(), None
        )
        heard, sent = traces.timed(seen)
        self.sample[acks[heard]] = data[sent] + 1
        self.sample[back] = np.maximum.accumulate(self.sample[back])

    def is_lost(self, rows: Ints) -> Bools:
        """Which of some rows have a cause of loss."""
        return np.asarray(np.isin(self.fate[rows], [FATES.index(cause) for cause in CAUSES]))

    def _lose(self, record: Record) -> None:
        starts = dict(zip(record.by_place, self.starts.tolist(), strict=False))
        found = sorted(
            (round(one.t_s * 1e9), starts[one.link, one.direction] + one.packet - 1, one)
            for one in Fates(record).lost()
            if one.cause in CAUSES
        )
        self.lost_ns, self.lost = (np.array([one[place] for one in found], np.int64) for place in (0, 1))
        self.repair = np.array([REPAIRS.index(one.repair) for *_, one in found], np.int64)
        by = [row - one.packet + one.repaired_packet if one.repaired_packet else NOBODY for _, row, one in found]
        self.repaired_by = np.array(by, np.int64)

    @property
    def end_ns(self) -> int:
        """The last time in the table."""
        return int(max(self.offered_ns.max(initial=0), self.arrived_ns.max(initial=0)))

    def cause(self, row: int) -> str:
        """Why a packet was lost there."""
        return FATES[self.fate[row]]

    def way(self, row: int) -> str:
        """The direction where a packet was, as the page calls it."""
        place = int(np.searchsorted(self.starts, row, side="right")) - 1
        return f"{self.directions[place].link} {self._planned[place].from_} → {self._planned[place].to}"

    def origins(self, rows: Ints) -> Ints:
        """Where packets began."""
        found = rows
        while np.any(self.before[found] != NOBODY):
            found = np.where(self.before[found] != NOBODY, self.before[found], found)
        return found

    def columns(self) -> Mapping[str, Column]:
        """The table, for the page."""
        has_arrived = self.arrived_ns != NEVER
        has_left = self._all(lambda _, one: (one.due_ns != NEVER) | (one.left_ns != NEVER)) != 0
        has_left = (has_left | has_arrived) & (self.fate != FATES.index(QUEUE))
        left = np.where(has_left, self._all(lambda _, one: wire_ns(one)), self.offered_ns)
        bits = self.fate | has_left * HAS_LEFT | has_arrived * HAS_ARRIVED | self.is_again * IS_AGAIN
        bounds = zip(self.starts[:-1], self.starts[1:], strict=True)
        takes = [_takes(self.offered_ns[a:b], left[a:b], has_left[a:b]) for a, b in bounds]
        wire, id_, window = self.wire_bytes, self._all(_of("id_")), self._all(_of("window"))
        return {
            "before": Column(self.before, "step"),
            "flow": Column(self.flow, known=self.flow),
            "payload": Column(self.payload, known=self.payload),
            "takes": Column(np.concatenate(takes)),
            "after": Column(np.where(has_arrived, self.arrived_ns - left, 0)),
            "bits": Column(bits),
            "offered": Column(self.offered_ns, "step", known=self.arrived_ns),
            "wire_bytes": Column(wire, known=wire),
            "waited_bytes": Column(self.waited_bytes, "step"),
            "bit_errors": Column(self._all(_of("bit_errors"))),
            "id": Column(id_, "flow", known=id_),
            "sequence": Column(self.sequence, "stream", known=self.sequence),
            "acknowledgement": Column(self.acknowledgement, "flow", known=self.acknowledgement),
            "window": Column(window, "flow", known=window),
            "flags": Column(self.flags, known=self.flags),
            "sample": Column(self.sample, "flow"),
        }

    def lost_columns(self) -> Mapping[str, Column]:
        """The losses, for the page."""
        by = np.where(self.repaired_by == NOBODY, 0, self.repaired_by - self.lost)
        times, rows = Column(self.lost_ns, "step"), Column(self.lost, "step")
        return {"t_ns": times, "row": rows, "repair": Column(self.repair), "by": Column(by)}


def _of(name: str) -> Callable[[int, Packets], Ints]:
    return lambda _, packets: np.asarray(getattr(packets, name))


def _takes(offered: Ints, left: Ints, has_left: Bools) -> Ints:
    """What each packet took from when it was offered, or the one before it had left, to when it left; 0 for those that
    did not leave.
    """
    gone = np.where(has_left, left, np.iinfo(np.int64).min)
    before = np.maximum.accumulate(np.concatenate([[np.iinfo(np.int64).min], gone]))[:-1]
    return np.where(has_left, left - np.maximum(offered, before), 0)
