"""The report of a cell's lost packets: its record says which they were, its captures which frames.

A capture only gives numbers: a frame is a packet of the record where all that no router changes agrees, and the order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace

import numpy as np

from scpslab.analysis import capture as pcap
from scpslab.analysis.metrics.data_flows import DATA_FLOWS
from scpslab.analysis.output import NOTHING, Column, Report, Row, numbers
from scpslab.analysis.run import AFRESH, RunCell, cut_short
from scpslab.core.strict_json import count
from scpslab.measure.connections import Ints
from scpslab.measure.losses import NOBODY, SUPERFLUOUS, Fates, Lost, OfHop, origins, resends
from scpslab.measure.record import numbers_of
from scpslab.plan.links import ALL_CAUSES, LOSS_CAUSES, POLICED, QUEUE

FORMAT = 1
HOW_TO_READ = (
    "time: at the place of the loss; repaired: when the bytes were sent again in a packet that arrived; "
    "frame: capture and number, as in Wireshark."
)
CAUSES = (*LOSS_CAUSES, SUPERFLUOUS)
# A capture's clock is read a moment after that of the record.
MOMENT_NS = 10_000


@dataclass(frozen=True)
class Losses:
    """All losses of a cell by time, and what a reader must know of those that are not in the list or have no frame."""

    run: str
    cell: str
    lost: tuple[Lost, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Frames:
    """A capture's IPv4 packets: when they were seen (ns since the epoch), and what no router changes of them."""

    name: str
    number: Ints
    t_ns: Ints
    identity: Ints

    def of(self, hop: OfHop) -> Ints:
        """For each packet of a direction its place among these; NOBODY without one."""
        return origins(self.identity, self.t_ns, _identity(hop), hop.at_ns + MOMENT_NS, is_whole=True)

    @classmethod
    def read(cls, cell: RunCell, name: str, notes: list[str]) -> _Frames:
        """Those of a capture of a cell; one that is cut short is told."""
        path = cell.capture_file(name)
        records = pcap.read_capture(path)
        if records.is_truncated:
            notes.append(cut_short(path))
        headers, seen = pcap.read_ip_headers(records), pcap.decode(records)
        ends = np.zeros((len(headers.record), 3), np.int64)
        of_transport = [seen.source_port, seen.destination_port, seen.seq]
        ends[np.searchsorted(headers.record, seen.frame - 1)] = np.stack(of_transport, axis=1)
        alike = (headers.protocol, headers.source, headers.destination, headers.id_, headers.ip_bytes, *ends.T)
        t_ns = records.t_ns[headers.record] - (cell.epoch_realtime_ns or 0)
        return cls(name, headers.record + 1, t_ns, np.stack(alike, axis=1))


def _identity(hop: OfHop) -> Ints:
    """The same of each packet of a direction."""
    packets = hop.packets
    flows = np.array([numbers_of(flow) for flow in packets.flows], np.int64).reshape(-1, 5)[packets.flow]
    protocol, near, near_port, far, far_port = flows.T
    size = packets.wire_bytes - hop.way.overhead_bytes
    return np.stack([protocol, near, far, packets.id_, size, near_port, far_port, packets.sequence], axis=1)


def find_losses(cell: RunCell, run: str) -> Losses:
    """The losses in a cell's record of packets, with their frames in its captures.

    Raises:
        ResultError: a file of the cell is damaged.
    """
    record = cell.record
    if record is None:
        return Losses(run, cell.id, (), tuple(_without_record(cell)))
    notes = [
        f"{link.name}: a serial line has no packets; records/{link.name}.jsonl counts what its ends discarded."
        for link in cell.plan.network.serial_links
    ]
    named = [probe.name for probe in cell.plan.cell.probes if probe.captured_node]
    captures = [_Frames.read(cell, name, notes) for name in named if cell.capture_file(name).is_file()]
    fates, framed = Fates(record), _Framed(captures)
    lost = [framed(one, fates.hops[one.link, one.direction]) for one in fates.lost()]
    return Losses(run, cell.id, tuple(sorted(lost, key=lambda one: (one.t_s, one.link, one.direction))), tuple(notes))


class _Framed:
    """Gives losses the numbers that frames have in the capture that saw them first."""

    def __init__(self, captures: Sequence[_Frames]) -> None:
        self.captures = captures
        self.places: dict[int, list[Ints]] = {}

    def __call__(self, lost: Lost, hop: OfHop) -> Lost:
        if id(hop) not in self.places:
            self.places[id(hop)] = [capture.of(hop) for capture in self.captures]
        found = zip(self.captures, self.places[id(hop)], strict=True)
        seen = [(capture, of) for capture, of in found if of[lost.packet - 1] != NOBODY]
        if not seen:
            return lost
        capture, of = min(seen, key=lambda one: int(one[0].t_ns[one[1][lost.packet - 1]]))
        numbers = [
            None if packet is None or of[packet - 1] == NOBODY else int(capture.number[of[packet - 1]])
            for packet in (lost.packet, lost.repaired_packet)
        ]
        return replace(lost, capture=capture.name, frame=numbers[0], repaired_frame=numbers[1])


def _without_record(cell: RunCell) -> Iterator[str]:
    """What is known of the losses of a cell that has no record, and what to do."""
    for account in cell.records("accounting"):
        counts = {cause: packets for cause in ALL_CAUSES if (packets := count(account, f"{cause}_packets"))}
        if counts:
            losses = ", ".join(f"{packets} {cause}" for cause, packets in counts.items())
            yield f"{account.get('link')}, {account.get('direction')} direction: {losses}, not in this list."
    if cell.plan.cell.mininet is not None:
        yield "Networks of Mininet scripts have no record of packets, only these counts. Describe yours in a scenario."
    elif cell.plan.cell.packets:
        yield f"{cell.packets_file}: found no such file; expected the record of the cell's packets. {AFRESH}"
    else:
        yield "The cell was run without a record of its packets. Run its scenario again, without packets: off."


def report(*found: Losses) -> Report:
    """The losses of cells as they are shown; with several cells, each line says whose."""
    each = [_of_cell(losses) for losses in found]
    if len(found) == 1:
        return each[0]
    whose = list(zip(found, each, strict=True))
    return Report(
        f"{len(found)} cells: {sum(len(losses.lost) for losses in found)} lost packets in this list",
        [Column("cell", folds=True), *each[0].columns],
        [replace(row, cells=[losses.cell, *row.cells]) for losses, one in whose for row in one.rows],
        [HOW_TO_READ, *(f"{losses.cell}: {note}" for losses in found for note in losses.notes)],
        [
            ["run", "cell", *each[0].records[0]],
            *([losses.run, losses.cell, *record] for losses, one in whose for record in one.records[1:]),
        ],
        {"format": FORMAT, "cells": [one.document for one in each]},
    )


def _of_cell(losses: Losses) -> Report:
    texts = map(Column, ("time (s)", "cause", "place", "packet"))
    columns = [*texts, *numbers("seq", "bytes", "frame", "repaired (s)")]
    document = {
        "format": FORMAT,
        "run": losses.run,
        "cell": losses.cell,
        "lost": [asdict(lost) for lost in losses.lost],
        "notes": losses.notes,
    }
    title = f"{losses.cell}: {len(losses.lost)} lost packets in this list"
    records = [[field.name for field in fields(Lost)], *(list(asdict(lost).values()) for lost in losses.lost)]
    return Report(title, columns, [_row(lost) for lost in losses.lost], (HOW_TO_READ, *losses.notes), records, document)


def _row(lost: Lost) -> Row:
    repaired = lost.repair if lost.repaired_s is None else f"{lost.repaired_s:.6f}"
    cells = [f"{lost.t_s:.6f}", lost.cause, _place(lost), _packet(lost), _number(lost.seq), _number(lost.payload_bytes)]
    return Row([*cells, f"{lost.capture}:{lost.frame}" if lost.frame else NOTHING, repaired])


def _place(lost: Lost) -> str:
    return f"{lost.link} {lost.direction} {lost.place}"


def _packet(lost: Lost) -> str:
    flags = f" [{lost.flags}]" if lost.flags else ""
    return f"{lost.protocol} {lost.source} > {lost.destination}{flags}"


def _number(value: int | None) -> str:
    return NOTHING if value is None else str(value)


def resend_columns(cell: RunCell) -> dict[str, str]:
    """For formulas: `resends`, `resends_CAUSE`, and `resend_causes` and `resend_frames`, all in order of time: of the
    packets that the capture at the sender can show, which stands behind the sender's own queue.

    Nothing for a cell that has no record, no such capture or not one transfer.

    Raises:
        ResultError: a file of the cell is damaged.
    """
    senders = [workload.from_ for workload in cell.plan.cell.workloads if DATA_FLOWS[workload.kind].has_formulas]
    name = next((probe.name for probe in cell.plan.cell.probes if senders == [probe.captured_node]), "")
    if not name or cell.record is None or cell.status != "completed":
        return {}
    fates = Fates(cell.record)
    mine = fates.sent_by(senders[0])
    if mine is None:
        return {}
    flow, at = mine
    copies = np.flatnonzero((at.payload > 0) & ~np.isin(at.hop.cause[at.rows], (QUEUE, POLICED)))
    fate = fates.causes(flow, at)
    resent = resends(at.left[copies], at.right[copies], [fate[copy] for copy in copies])
    frames = _Frames.read(cell, name, [])
    shown = frames.of(at.hop)[at.rows[copies]]
    causes = [cause for _, cause in resent]
    return {
        "resends": str(len(causes)),
        **{f"resends_{cause}": str(causes.count(cause)) for cause in CAUSES},
        "resend_causes": " ".join(causes),
        "resend_frames": " ".join(str(frames.number[shown[index]]) for index, _ in resent if shown[index] != NOBODY),
    }
