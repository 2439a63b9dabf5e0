"""A cell as the page has it: one JSON object, and columns of numbers beside it (docs/plan-format.md).

Made from the plan, the record of packets and the records of the lab and its probes. Every packet of the record is
there; what the record lacks is said in `notes`.
And what senders knew of their windows: the kernel's TCP, SCPS-TP and gateways at each acknowledgement, QUIC by its own
log.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scpslab.analysis.run import RunCell, rates_of
from scpslab.core import units
from scpslab.core.addresses import ip_of
from scpslab.core.strict_json import number, text
from scpslab.measure.connections import Ints
from scpslab.measure.losses import NOBODY
from scpslab.measure.packets import FATES
from scpslab.measure.record import Record
from scpslab.measure.states import States
from scpslab.plan.events import LinkStep, RouteStep, RunStep, Step
from scpslab.plan.flows import places
from scpslab.plan.links import FOR_EVER_NS, QUEUE, Direction
from scpslab.plan.serial_links import SerialDirection
from scpslab.runs import CellFiles
from scpslab.studio.rows import CAUSES, Column, Columns, Conversation, Rows, conversations

FORMAT = 3
LONGEST_COMMAND = 80
THIN = "\u202f"
NO_RECORD = "This cell has no record of packets (packets: off, or serial links only): only events are shown."
NOT_TOLD = "No sender told its congestion window. Flight comes from the record."
SERIAL = "Serial links have no record of packets."


@dataclass(frozen=True)
class CellData:
    """What the page has of a cell: `meta`, values of JSON, and `columns`, compressed."""

    meta: Mapping[str, object]
    columns: bytes


def cell_data(cell: RunCell, name: str = "") -> CellData:
    """A cell, read whole. `name`: what the page calls it, if not by its id.

    Raises:
        ResultError: a file of the cell cannot be read.
    """
    record = cell.record
    directions = list(record.by_place.values()) if record else []
    columns = Columns()
    talks, numbers = conversations(record, directions) if record else ([], [])
    rows = Rows(record, talks, numbers) if record and directions else None
    series = list(told(cell, talks, rows, columns)) if rows else []
    marks = sorted(_marks(cell), key=lambda mark: (mark["t_ns"], str(mark["text"])))
    ends_ns = [rows.end_ns if rows else 1, *(int(one.pop("last_ns")) for one in series)]
    meta = {
        "format": FORMAT,
        "id": name or cell.id,
        "status": cell.status,
        "end_ns": max([*ends_ns, *(int(mark["t_ns"]) for mark in marks if mark["kind"] == "phase")]),
        "nodes": _nodes(cell),
        "links": _links(cell),
        "directions": list(_directions(cell, rows)) if rows else [],
        "packets": columns.table(rows.columns()) if rows else None,
        "lost": columns.table(rows.lost_columns()) if rows else None,
        "conversations": [{**asdict(talk), "data_way": talk.data_way} for talk in talks],
        "busiest": sorted(range(len(talks)), key=lambda one: -max(talks[one].payload)),
        "series": series,
        "facts": list(_facts(cell, rows)) if rows else [],
        "marks": marks,
        "notes": list(_notes(cell, record, series)),
    }
    return CellData(meta, columns.packed())


def _facts(cell: RunCell, rows: Rows) -> Iterator[tuple[str | int, ...]]:
    """What a new reader asks first, answered: sentences, some with the time and the packet to go to."""
    links = len(cell.plan.network.all_links)
    yield (f"{f'{len(rows):,}'.replace(',', THIN)} packets on {'a link' if links == 1 else f'{links} links'}",)
    if len(rows.lost):
        counts = Counter(rows.cause(row) for row in rows.lost.tolist())
        yield (f"Lost: {', '.join(f'{counts[cause]} {said}' for cause, said in CAUSES.items() if cause in counts)}",)
        first, at_ns = int(rows.lost[0]), int(rows.lost_ns[0])
        yield f"First loss: {CAUSES[rows.cause(first)]}", at_ns, first
    if rows.waited_bytes.any():
        depth = rows.waited_bytes + np.where(rows.fate == FATES.index(QUEUE), 0, rows.wire_bytes)
        longest = int(np.where(rows.waited_bytes > 0, depth, 0).argmax())
        queue, at_ns = units.text("size", int(float(f"{depth[longest]:.4g}"))), int(rows.offered_ns[longest])
        yield f"Longest queue: {queue} before {rows.way(longest)}", at_ns, longest


def _notes(cell: RunCell, record: Record | None, series: list[dict[str, Any]]) -> Iterator[str]:
    if record is None:
        yield NO_RECORD
    elif not series:
        yield NOT_TOLD
    if cell.plan.network.serial_links:
        yield SERIAL
    if cell.status != "completed":
        yield f"The cell is {cell.status}{f': {cell.reason}' if cell.reason else ''}."


def _nodes(cell: RunCell) -> list[dict[str, Any]]:
    kinds = {node.name: node.kind for node in cell.plan.network.nodes}
    at = places(cell.plan)
    return [
        {"name": name, "kind": kinds[name], "column": at[name][0], "row": at[name][1]} for name in kinds if name in at
    ]


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
    rates = rates_of(cell.plan, link, way, cell.table)
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


def _directions(cell: RunCell, rows: Rows) -> Iterator[dict[str, Any]]:
    """Where the rows of each direction begin; of each link and way their numbers."""
    known = [link.name for link in cell.plan.network.all_links]
    for packets, first in zip(rows.directions, rows.starts.tolist(), strict=False):
        link = known.index(packets.link)
        ways = [one.name for one in cell.plan.network.links[link].directions]
        yield {"link": link, "way": ways.index(packets.direction), "first": first, "rows": len(packets)}


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
        unit = {"delay": "duration", "rate": "rate"}.get(step.change)
        value = units.text(unit, int(step.value)) if unit else str(step.value)
        ways = f" {step.directions[0]}" if len(step.directions) == 1 else ""
        return f"{step.link}{ways}: {step.change} {value}"
    if isinstance(step, RunStep):
        command = step.command if len(step.command) <= LONGEST_COMMAND else f"{step.command[:LONGEST_COMMAND]}…"
        return f"{step.node}: {command}"
    if isinstance(step, RouteStep):
        return f"{step.node}: to {step.route.to} {f'via {step.route.via}' if step.holds else 'as at first'}"
    return f"{step.service}: {step.signal}"


# A window that falls to less than this share has fallen.
FALL = 0.92
LARGEST_LOG = 1 << 26
# From here on numbers are none that a page can write.
MOST = 1 << 53
# What qlog calls them, and how many of ours one of theirs is (draft-ietf-quic-qlog-quic-events-07, section 7.2).
TOLD = (("congestion_window", 1), ("ssthresh", 1), ("smoothed_rtt", 1e6))


def told(cell: RunCell, talks: Sequence[Conversation], rows: Rows, columns: Columns) -> Iterator[dict[str, Any]]:
    """Series of each sender: `cwnd` and `ssthresh` in bytes, `srtt` in ns, where they change; and each fall of the
    window, with the newest loss that it had heard of.
    """
    addresses = cell.record.addresses if cell.record else {}
    services = [service.name for service in cell.plan.cell.services]
    for one in cell.senders:
        node = one.gateway or addresses.get(ip_of(one.local), "")
        place, way = _place_of(talks, one, node, services if one.gateway else ())
        if place != NOBODY and talks[place].payload[way]:
            series = one.cwnd_bytes, one.ssthresh_bytes, one.srtt_us * 1000
            yield {**_sender(place, way, one.t_ns, series, rows, columns), "ends": [one.local, one.remote]}
    for place, way, path in _logs(cell, talks):
        begin = rows.of(2 * place + way, talks[place].first[way])[:1]
        logged = read_qlog(path)
        if len(begin) and len(logged) > 1:
            t_ns, cwnd, ssthresh, srtt = (logged[1:] - [logged[0, 0], 0, 0, 0]).T
            yield _sender(place, way, t_ns + rows.offered_ns[begin], (cwnd, ssthresh, srtt), rows, columns)


def _sender(
    place: int, way: int, t_ns: Ints, series: tuple[Ints, Ints, Ints], rows: Rows, columns: Columns
) -> dict[str, Any]:
    named = zip(("cwnd", "ssthresh", "srtt"), series, strict=True)
    falls = columns.table(_falls(t_ns, series[0], rows, 2 * place + way))
    told = {name: _series(t_ns, values, columns) for name, values in named}
    return {"conversation": place, "way": way, "falls": falls, **told, "last_ns": int(t_ns.max(initial=0))}


def _logs(cell: RunCell, talks: Sequence[Conversation]) -> Iterator[tuple[int, int, Path]]:
    """The qlog files that workloads have kept, with the conversation and way whose sender wrote each."""
    for workload in cell.plan.cell.workloads:
        own = [place for place, talk in enumerate(talks) if talk.owner == workload.name and not talk.is_tcp]
        place = max(own, key=lambda place: sum(talks[place].payload), default=NOBODY)
        for name in getattr(workload, "keep", ()) if own else ():
            for way, node in enumerate(talks[place].nodes):
                path = CellFiles(cell.folder).logs / f"{workload.name}-{node}-{name}.gz"
                if name.endswith("qlog") and path.is_file():
                    yield place, way, path


def read_qlog(path: Path) -> Ints:
    """Rows of time (ns), window, threshold (bytes) and smoothed round trip (ns), NOBODY where it is not told; the first
    has the time at which the first packet was sent. None of a file that is no such log.
    """
    now, found = [0, NOBODY, NOBODY, NOBODY], list[list[int]]()
    # A stranger's file: whatever it raises, the log ends there.
    with suppress(Exception), gzip.open(path) as file:
        for line in file.read(LARGEST_LOG).decode("utf-8", "replace").split("\n"):
            event = json.loads(line.strip("\x1e") or "{}")
            data, is_sent = event.get("data", {}), event.get("name") == "transport:packet_sent"
            if (is_sent and not found) or (found and event.get("name") == "recovery:metrics_updated"):
                told = [data.get(name, old / of) * of for (name, of), old in zip(TOLD, now[1:], strict=True)]
                earlier, now = now[0], [round(event["time"] * 1e6), *map(round, told)]
                if now[0] < earlier or max(map(abs, now)) >= MOST:
                    break
                found.append(now)
    return np.array(found, np.int64).reshape(-1, 4)


def _place_of(talks: Sequence[Conversation], one: States, node: str, gateways: Collection[str]) -> tuple[int, int]:
    """The conversation whose sender at a node has these states, and its way; NOBODY where no packet was seen.

    On either side of a gateway is one with the same ends; and between gateways all are in one of UDP.
    """
    ways = [(place, way) for place in range(len(talks)) for way in (0, 1) if talks[place].nodes[way] == node]
    own = [at for at in ways if (talks[at[0]].ends[at[1]], talks[at[0]].ends[1 - at[1]]) == (one.local, one.remote)]
    in_udp = [at for at in ways if talks[at[0]].protocol == "UDP" and talks[at[0]].owner in gateways]
    return next(iter(own + in_udp), (NOBODY, 0))


def _series(t_ns: Ints, values: Ints, columns: Columns) -> dict[str, object]:
    """Values that are there, where they change."""
    there = values >= 0
    t_ns, values = t_ns[there], values[there]
    new = np.flatnonzero(np.diff(values, prepend=NOBODY))
    return columns.table({"t_ns": Column(t_ns[new], "step"), "value": Column(values[new], "step")})


def _falls(t_ns: Ints, cwnd: Ints, rows: Rows, flow: int) -> dict[str, Column]:
    """Where the window fell, sample by sample without a rise: since when, from and to how many bytes, and the row of
    the flow's packet that was sent last of those whose loss the sender had heard of (NOBODY: none).
    """
    begins = np.flatnonzero(np.diff(cwnd, prepend=NOBODY) > 0)
    ends = np.concatenate([begins[1:], [len(cwnd)]]) - 1
    has_fallen = cwnd[ends] < FALL * cwnd[begins]
    begins, ends = begins[has_fallen], ends[has_fallen]
    lost = rows.lost[rows.flow[rows.lost] == flow]
    sent_ns = rows.offered_ns[rows.origins(lost)]
    order = np.argsort(sent_ns, kind="stable")
    # What holds at the begin may hold for some samples.
    since = np.array([begin + int(np.argmax(cwnd[begin:] < cwnd[begin])) for begin in begins.tolist()], np.int64)
    last = np.searchsorted(sent_ns[order], _heard_of(t_ns[since], rows, flow), side="left") - 1
    row = np.concatenate([lost[order], [NOBODY]])[last]
    fell = {"from": Column(cwnd[begins]), "to": Column(cwnd[ends])}
    return {"t_ns": Column(t_ns[since], "step"), **fell, "row": Column(row, "step")}


def _heard_of(t_ns: Ints, rows: Rows, flow: int) -> Ints:
    """Until when a sender had heard, at some times, of what it had sent: the newest answer that had come back was sent
    when this packet was the newest at the receiver. A loss of a later one can have moved nothing yet.
    """
    for way in (flow ^ 1, flow):
        came = rows.came(way)
        sent_ns = np.maximum.accumulate(rows.offered_ns[rows.origins(came)])
        t_ns = np.concatenate([[NOBODY], sent_ns])[np.searchsorted(rows.arrived_ns[came], t_ns, side="right")]
    return t_ns
