"""A cell as the page has it: one JSON object, and columns of numbers beside it (docs/plan-format.md).

Made from the plan, the record of packets and the records of the lab and its probes. Every packet of the record is
there; what the record lacks is said in `notes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from scpslab.analysis.run import RunCell
from scpslab.analysis.viewpoints import rates_of
from scpslab.core import units
from scpslab.core.strict_json import JsonObject, number, text
from scpslab.measure.connections import Bools, Ints
from scpslab.measure.packets import FATES, HAS_ARRIVED, HAS_LEFT, NEVER, TCP_HEADERS, Packets
from scpslab.measure.record import Record, dropped, wire_ns
from scpslab.plan.events import LinkStep, RunStep, Step
from scpslab.plan.links import ALL_CAUSES, FOR_EVER_NS, Direction
from scpslab.plan.nodes import Switch
from scpslab.plan.serial_links import SerialDirection
from scpslab.studio.columns import Column, Columns, How
from scpslab.studio.flows import Conversation, conversations
from scpslab.studio.hops import Source, sources
from scpslab.studio.layout import places

FORMAT = 1
# A threshold that was never set is as large as a number can be; no window is (RFC 7323 §2.3).
NO_THRESHOLD_BYTES = 10**9
NO_VALUE = -1
LONGEST_COMMAND = 80
NO_RECORD = (
    "This cell has no record of packets (packets: off, serial links only, or an older run): only samples and events "
    "are shown. Run it again to see its packets."
)
SAMPLED = (
    "Congestion window, threshold and smoothed round trip of SCPS programs are samples of the probe tcp_info, drawn as "
    "dots and steps."
)
NOT_TOLD = "No sender told its congestion window. Flight comes from the record."
SERIAL = "Serial links have no record of packets."


@dataclass(frozen=True)
class CellData:
    """What the page has of a cell: `meta`, values of JSON, and `columns`, compressed."""

    meta: Mapping[str, object]
    columns: bytes


def cell_data(cell: RunCell) -> CellData:
    """A cell, read whole.

    Raises:
        ResultError: a file of the cell cannot be read.
    """
    record = cell.record
    directions = list(record.by_place.values()) if record else []
    columns = Columns()
    talks, numbers = conversations(record, directions) if record else ([], [])
    samples = list(_samples(cell, talks, columns))
    ends_ns = [_end_ns(packets) for packets in directions] + [int(one["last_ns"]) for one in samples]
    marks = sorted(_marks(cell), key=lambda mark: (mark["t_ns"], str(mark["text"])))
    meta = {
        "format": FORMAT,
        "id": cell.id,
        "scenario": cell.plan.cell.scenario,
        "axes": {name: str(value) for name, value in cell.plan.cell.axes.items()},
        "status": cell.status,
        "reason": cell.reason,
        "end_ns": max([*ends_ns, *(int(mark["t_ns"]) for mark in marks if mark["kind"] == "phase"), 1]),
        "fates": list(FATES),
        "causes": ALL_CAUSES,
        "nodes": _nodes(cell),
        "links": _links(cell),
        "directions": _directions(cell, record, columns, numbers) if record else [],
        "conversations": [_conversation(talk) for talk in talks],
        "samples": [{key: value for key, value in one.items() if key != "last_ns"} for one in samples],
        "marks": marks,
        "notes": list(_notes(cell, record, samples)),
    }
    return CellData(meta, columns.packed())


def _notes(cell: RunCell, record: Record | None, samples: list[dict[str, Any]]) -> Iterator[str]:
    if record is None:
        yield NO_RECORD
    if any(one["probe"] for one in samples):
        yield SAMPLED
    if not samples:
        yield NOT_TOLD
    if cell.plan.network.serial_links:
        yield SERIAL
    if cell.status != "completed":
        yield f"The cell is {cell.status}{f': {cell.reason}' if cell.reason else ''}."


def _nodes(cell: RunCell) -> list[dict[str, Any]]:
    at = places(cell.plan)
    found: list[dict[str, Any]] = []
    for node in cell.plan.network.nodes:
        if node.name in at:
            column, row = at[node.name]
            stack = "" if isinstance(node, Switch) else node.stack
            found.append({"name": node.name, "kind": node.kind, "stack": stack, "column": column, "row": row})
    return found


def _links(cell: RunCell) -> list[dict[str, Any]]:
    return [
        {
            "name": link.name,
            "ends": [end.node for end in link.ends],
            "directions": [_way(cell, link.name, one) for one in link.directions],
        }
        for link in cell.plan.network.all_links
    ]


def _way(cell: RunCell, link: str, way: Direction | SerialDirection) -> dict[str, Any]:
    """A direction by its plan. `rates`: until when (ns; null: for good) and bit/s."""
    errors = cell.plan.cell.errors(link, way.name)
    rates = rates_of(cell.plan, link, way)
    queue = way.queue if isinstance(way, Direction) else None
    return {
        "name": way.name,
        "from": way.from_,
        "to": way.to,
        "delay_ns": way.first_delay_ns if isinstance(way, Direction) else way.delay_ns,
        "rates": [[None if until == FOR_EVER_NS else until, rate] for until, rate in rates],
        "room_bytes": queue.room_bytes if queue else None,
        "outages": [list(one) for one in errors.outages] if errors else [],
    }


def _directions(
    cell: RunCell, record: Record, columns: Columns, numbers: list[list[list[int]]]
) -> list[dict[str, Any]]:
    """The packets of each direction, and where they came from. `talks`: of each flow, its conversation and way."""
    directions = list(record.by_place.values())
    came = sources(record, directions, numbers)
    known = [link.name for link in cell.plan.network.all_links]
    found: list[dict[str, Any]] = []
    for place, packets in enumerate(directions):
        link = cell.plan.network.links[known.index(packets.link)]
        before = _Before(directions, numbers, came[place], place)
        found.append(
            {
                "link": known.index(packets.link),
                "way": [one.name for one in link.directions].index(packets.direction),
                "talks": numbers[place],
                "is_tcp": [int(flow.protocol in TCP_HEADERS) for flow in packets.flows],
                "duplicates": len(packets.duplicates_ns),
                "table": columns.table(_columns(packets, record.planned[packets.link, packets.direction], before)),
            }
        )
    return found


class _Before:
    """The packets of a direction where they were before: in an earlier table."""

    def __init__(self, directions: Sequence[Packets], talks: list[list[list[int]]], source: Source, place: int) -> None:
        self.source = source
        self.is_known = (source.direction >= 0) & (source.direction < place)
        self._directions, self._talks, self._place = directions, talks, place

    def column(self, of: Callable[[Packets], Ints], numbers: Ints, how: How = "value") -> Column:
        """Numbers of the packets, with what they were there."""
        known = np.zeros(len(numbers), np.int64)
        for other in np.unique(self.source.direction[self.is_known]):
            rows = self.is_known & (self.source.direction == other)
            known[rows] = of(self._directions[other])[self.source.row[rows]]
        return Column(numbers, how, known, self.is_known)

    def flows(self, numbers: Ints) -> Column:
        """The numbers of flows here of what is known there."""
        here = {tuple(talk): number for number, talk in enumerate(self._talks[self._place])}
        known = np.zeros(len(numbers), np.int64)
        for other in np.unique(self.source.direction[self.is_known]):
            rows = self.is_known & (self.source.direction == other)
            there = np.array([here.get(tuple(talk), 0) for talk in self._talks[other]], np.int64)
            known[rows] = there[self._directions[other].flow[self.source.row[rows]]]
        return Column(numbers, "value", known, self.is_known)


def _columns(packets: Packets, way: Direction, before: _Before) -> dict[str, Column]:
    is_lost = dropped(packets, way)
    has_left = ~is_lost & ((packets.due_ns != NEVER) | (packets.left_ns != NEVER) | (packets.arrived_ns != NEVER))
    has_arrived = packets.arrived_ns != NEVER
    left = np.where(has_left, wire_ns(packets), packets.offered_ns)
    bits = packets.fate | has_left * np.uint8(HAS_LEFT) | has_arrived * np.uint8(HAS_ARRIVED)
    return {
        "from": Column(before.source.direction + 1),
        "row": Column(before.source.row, "step"),
        "flow": before.flows(packets.flow),
        "payload": before.column(lambda one: one.payload, packets.payload),
        "offered": before.column(lambda one: one.arrived_ns, packets.offered_ns, "step"),
        "takes": Column(_takes(packets.offered_ns, left, has_left)),
        "after": Column(np.where(has_arrived, packets.arrived_ns - left, 0)),
        "bits": Column(bits.astype(np.int64)),
        "wire_bytes": before.column(lambda one: one.wire_bytes, packets.wire_bytes),
        "waited_bytes": Column(packets.waited_bytes, "step"),
        "bit_errors": Column(packets.bit_errors),
        "id": before.column(lambda one: one.id_, packets.id_, "flow"),
        "sequence": before.column(lambda one: one.sequence, packets.sequence, "stream"),
        "acknowledgement": before.column(lambda one: one.acknowledgement, packets.acknowledgement, "flow"),
        "window": before.column(lambda one: one.window, packets.window, "flow"),
        "flags": before.column(lambda one: one.flags.astype(np.int64), packets.flags.astype(np.int64)),
    }


def _takes(offered: Ints, left: Ints, has_left: Bools) -> Ints:
    """What each packet took from when it was offered, or the one before it had left, to when it left; 0 for those that
    did not leave.
    """
    gone = np.where(has_left, left, np.iinfo(np.int64).min)
    before = np.maximum.accumulate(np.concatenate([[np.iinfo(np.int64).min], gone]))[:-1]
    return np.where(has_left, left - np.maximum(offered, before), 0)


def _end_ns(packets: Packets) -> int:
    return max(int(packets.offered_ns.max(initial=0)), int(packets.arrived_ns.max(initial=0)))


def _conversation(talk: Conversation) -> dict[str, Any]:
    return {**asdict(talk), "data_way": talk.data_way}


def _samples(cell: RunCell, talks: list[Conversation], columns: Columns) -> Iterator[dict[str, Any]]:
    """What each sender told of its window: the kernel at each acknowledgement, else as a probe saw it; ns, bytes and
    µs.
    """
    node_of = cell.record.addresses if cell.record else {}
    seen = set()
    for one in cell.states:
        talk, way = _conversation_of(talks, one.local, one.remote)
        if talk == NO_VALUE or not talks[talk].payload[way]:
            continue
        seen.add((one.local, one.remote))
        series = (one.t_ns, one.cwnd_bytes, one.ssthresh_bytes, one.srtt_us)
        node = node_of.get(one.local.rpartition(":")[0], "")
        yield _sampled(columns, (one.local, one.remote), (talk, way), series, node=node, probe=None)
    for probe in cell.plan.cell.probes:
        if probe.sampled_node is None:
            continue
        of_ends: dict[tuple[str, str], list[JsonObject]] = {}
        for line in cell.records(probe.name):
            local, remote, t_s = text(line, "local"), text(line, "remote"), number(line, "t_s")
            if local and remote and t_s is not None and number(line, "cwnd_segments") is not None:
                of_ends.setdefault((local, remote), []).append(line)
        for ends, lines in of_ends.items():
            if ends in seen:
                continue
            t_ns = np.array([round((number(line, "t_s") or 0) * 1e9) for line in lines], np.int64)
            series = (
                t_ns,
                _segments(lines, "cwnd_segments"),
                _segments(lines, "ssthresh_segments"),
                _microseconds(lines),
            )
            place = _conversation_of(talks, *ends)
            yield _sampled(columns, ends, place, series, node=probe.sampled_node, probe=probe.name)


def _sampled(
    columns: Columns, ends: tuple[str, str], place: tuple[int, int], series: Sequence[Ints], **told: str | None
) -> dict[str, Any]:
    names = ("t", "cwnd", "ssthresh", "srtt_us")
    return {
        **told,
        "local": ends[0],
        "remote": ends[1],
        "conversation": place[0],
        "way": place[1],
        "table": columns.table({name: Column(its, "step") for name, its in zip(names, series, strict=True)}),
        "last_ns": int(series[0][-1]),
    }


def _segments(lines: list[JsonObject], key: str) -> Ints:
    """A number of segments in bytes; NO_VALUE where there is none, or none was set."""
    pairs = [(number(line, key), number(line, "mss_bytes") or 0) for line in lines]
    known = [
        NO_VALUE if value is None or value * mss >= NO_THRESHOLD_BYTES else int(value * mss) for value, mss in pairs
    ]
    return np.array(known, np.int64)


def _microseconds(lines: list[JsonObject]) -> Ints:
    values = [number(line, "srtt_ms") for line in lines]
    return np.array([NO_VALUE if value is None else round(value * 1000) for value in values], np.int64)


def _conversation_of(talks: list[Conversation], local: str, remote: str) -> tuple[int, int]:
    """The conversation between two ends and the way from the first to the second; -1 where no packet was seen."""
    for place, talk in enumerate(talks):
        if set(talk.ends) == {local, remote}:
            return place, 0 if talk.ends[0] == local else 1
    return NO_VALUE, 0


def _marks(cell: RunCell) -> Iterator[dict[str, Any]]:
    """What is told by lines across the plots: phases of the lab, starts of workloads, events of the script."""
    for line in cell.records("lab"):
        name, t_s = text(line, "name"), number(line, "t_s")
        if text(line, "event") == "phase" and name and t_s is not None and t_s >= 0:
            yield {"t_ns": round(t_s * 1e9), "kind": "phase", "text": name}
    for workload in cell.plan.cell.workloads:
        yield {"t_ns": workload.start_ns, "kind": "workload", "text": f"{workload.name} starts"}
    for line in cell.records("events"):
        t_s, step = number(line, "t_s"), number(line, "step")
        t_s = number(line, "start_t_s") if t_s is None else t_s
        if t_s is not None and step is not None and 1 <= step <= len(cell.plan.cell.events):
            yield {"t_ns": round(t_s * 1e9), "kind": "event", "text": _event_text(cell.plan.cell.events[int(step) - 1])}


def _event_text(step: Step) -> str:
    if isinstance(step, LinkStep):
        value = str(step.value)
        if step.change in ("delay", "rate"):
            value = units.text({"delay": "duration", "rate": "rate"}[step.change], int(step.value))
        ways = f" {step.directions[0]}" if len(step.directions) == 1 else ""
        return f"{step.link}{ways}: {step.change} {value}"
    if isinstance(step, RunStep):
        command = step.command if len(step.command) <= LONGEST_COMMAND else f"{step.command[:LONGEST_COMMAND]}…"
        return f"{step.node}: {command}"
    return f"{step.service}: {step.signal}"
