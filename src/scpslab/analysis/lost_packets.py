"""Where each packet of a cell was lost, which segment it was, and when its bytes were sent again.

The verdict log of a link's direction counts packets and does not read them: a line has the packet's ordinal among those
that reached the queue (`queue`) or the far end (all other causes). A capture that saw every packet of the direction, in
order, before the loss therefore names the packet. A capture counts as such when packets and bytes agree with the
direction's account and each lost packet has the size that the log states; otherwise the packets stay unidentified, and
`Losses.notes` says why.

A direction without a log is judged by two captures: what one saw before it and the other did not see behind it, if that
is as many packets as the account has lost.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Literal, Self

import numpy as np

from scpslab.analysis import capture as pcap
from scpslab.analysis.metrics.data_flows import DATA_FLOWS
from scpslab.analysis.output import NOTHING, Column, Report, Row, numbers
from scpslab.analysis.run import RunCell, cut_short
from scpslab.core.strict_json import JsonObject, count, number
from scpslab.plan import Plan
from scpslab.plan.links import LOSS_CAUSES, QUEUE, Direction
from scpslab.plan.nodes import Switch
from scpslab.plan.paths import NoPathError

ARRIVAL = "arrival"
FLAG_LETTERS = ((pcap.SYN, "S"), (pcap.FIN, "F"), (pcap.RST, "R"), (pcap.ACK, "A"))
ICMP = 1
# 105 is compressed SCPS-TP (CCSDS 714.0-B-2), whose fields stand relative to those of earlier packets.
PROTOCOLS = {ICMP: "icmp", 6: "tcp", 17: "udp", 105: "scps-tp compressed", 106: "scps-tp"}
FORMAT = 1
HOW_TO_READ = (
    "time: at the place of the loss; repaired: when the bytes were sent again in a packet that arrived; "
    "frame: capture and number, as in Wireshark."
)
SUPERFLUOUS = "superfluous"
CAUSES = ("queue", "corrupt", "outage", "policy", SUPERFLUOUS)
Repair = Literal["repaired", "never", "no data", "arrived before", "unknown"]


@dataclass(frozen=True)
class Lost:
    """A packet that did not arrive as it was sent. Without a `capture`, the log's own facts alone are known.

    `t_s` since the epoch; `place`: `queue` or `arrival` (the end of the link); `seq` counts from the first payload byte
    (a SYN has -1); `payload_bytes` None for a packet that is not TCP or UDP; `frame` counts as Wireshark does; `sent_s`
    is the frame's time. `repair`: `repaired` at `repaired_s`, when the last of its bytes was sent again in packets that
    were not lost; `never`; `no data`: it carried nothing that needs repair; `arrived before`: it was a copy of bytes
    that had arrived; `unknown`: not identified, or of a format not read here.
    """

    t_s: float
    cause: str
    link: str
    direction: str
    place: str
    ip_bytes: int
    protocol: str = ""
    source: str = ""
    destination: str = ""
    flags: str = ""
    seq: int | None = None
    payload_bytes: int | None = None
    capture: str = ""
    frame: int | None = None
    sent_s: float | None = None
    repair: Repair = "unknown"
    repaired_s: float | None = None
    repaired_frame: int | None = None


@dataclass(frozen=True)
class Losses:
    """All losses of a cell by time, and what a reader must know of those that are not in the list or not identified."""

    run: str
    cell: str
    lost: tuple[Lost, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Seen:
    """A capture file, read."""

    name: str
    epoch_ns: int
    records: pcap.PacketRecords
    headers: pcap.IpHeaders
    packets: pcap.Packets
    connections: list[pcap.Connection]

    def sent_s(self, index: int) -> float:
        """The time of a packet among the IP headers, since the epoch."""
        return (int(self.records.t_ns[self.headers.record[index]]) - self.epoch_ns) / 1e9


@dataclass(frozen=True)
class _Way:
    """A direction of a link: what the plan and the account say of it."""

    plan: Plan
    link: str
    direction: Direction
    account: JsonObject

    @property
    def where(self) -> str:
        """The direction in words."""
        return f"{self.link}, {self.direction.name} direction"

    def crossing(self, headers: pcap.IpHeaders) -> pcap.Ints:
        """Indices of the packets whose way leads over this direction."""
        pairs, label = np.unique(np.stack([headers.source, headers.destination], axis=1), axis=0, return_inverse=True)
        crosses = np.array([self._is_crossed(*map(ipaddress.IPv4Address, pair)) for pair in pairs.tolist()], np.bool_)
        return np.flatnonzero(crosses[label.reshape(-1)])

    def offered(self, seen: _Seen) -> pcap.Ints | None:
        """The same, if the capture saw every packet that the account counts; otherwise None."""
        offered = self.crossing(seen.headers)
        sizes = seen.headers.ip_bytes[offered] + self.direction.overhead_bytes
        counted = count(self.account, "offered_packets"), count(self.account, "offered_bytes")
        return offered if (len(offered), int(sizes.sum())) == counted else None

    def _is_crossed(self, source: ipaddress.IPv4Address, destination: ipaddress.IPv4Address) -> bool:
        ends = [_owner(self.plan, address) for address in (source, destination)]
        if ends[0] is None or ends[1] is None:
            return False
        try:
            hops = self.plan.network.paths.path(ends[0], ends[1], str(destination))
        except NoPathError:
            return False
        return any((hop.link.name, hop.direction.name) == (self.link, self.direction.name) for hop in hops)


def find_losses(cell: RunCell, run: str) -> Losses:
    """Reads verdict logs, accounts and captures of a cell.

    Raises:
        ResultError: a file of the cell is damaged.
    """
    captures = list(_captures(cell))
    notes = [cut_short(cell.capture_file(seen.name)) for seen in captures if seen.packets.is_truncated]
    accounts = {(str(line.get("link")), str(line.get("direction"))): line for line in cell.records("accounting")}
    logs: dict[tuple[str, str], str] = {}
    for probe in cell.plan.cell.probes:
        if probe.logged_direction:
            logs.setdefault(probe.logged_direction, probe.name)
    directions = {
        (link.name, direction.name): direction for link in cell.plan.network.links for direction in link.directions
    }
    losses: list[Lost] = []
    for place in dict.fromkeys((*logs, *accounts)):
        if place not in directions:
            continue
        way = _Way(cell.plan, place[0], directions[place], accounts.get(place, {}))
        if place in logs:
            lost, remarks = _logged(way, cell.records(logs[place]), captures)
        else:
            lost, remarks = _without_log(way, captures)
        losses += lost
        notes += remarks
    repaired = sorted(_repaired(losses, captures), key=lambda lost: (lost.t_s, lost.link, lost.direction))
    return Losses(run, cell.id, tuple(repaired), tuple(notes))


def _captures(cell: RunCell) -> Iterable[_Seen]:
    for probe in cell.plan.cell.probes:
        if probe.captured_node and cell.capture_file(probe.name).is_file():
            yield _read(cell, probe.name)


def _read(cell: RunCell, name: str) -> _Seen:
    path = cell.capture_file(name)
    records = pcap.read_records(path.read_bytes(), str(path))
    packets = pcap.decode(records)
    connections = pcap.split_connections(packets, cell.epoch_realtime_ns)
    return _Seen(name, cell.epoch_realtime_ns or 0, records, pcap.read_ip_headers(records), packets, connections)


@dataclass(frozen=True)
class _LogEntry:
    """A packet in a verdict log: its `ordinal` among those that reached the queue (cause `queue`) or the far end."""

    t_s: float
    cause: str
    ordinal: int
    wire_bytes: int

    @classmethod
    def of(cls, line: JsonObject) -> Self | None:
        """The packet in a line; None where the line has none."""
        t_s, ordinal, wire_bytes = number(line, "t_s"), count(line, "ordinal"), count(line, "wire_bytes")
        if t_s is None or ordinal is None or wire_bytes is None:
            return None
        return cls(t_s, str(line.get("verdict")), ordinal, wire_bytes)


def _logged(way: _Way, records: Sequence[JsonObject], captures: Sequence[_Seen]) -> tuple[list[Lost], list[str]]:
    """The losses in one verdict log, identified in a capture if there is one that saw the direction whole."""
    notes: list[str] = []
    entries: list[_LogEntry] = []
    for line in records:
        if line.get("event") == "log-full":
            notes.append(f"{way.where}: the verdict log was full; {line.get('missing')} losses are not in it.")
        elif entry := _LogEntry.of(line):
            entries.append(entry)
    if not entries:
        return [], notes
    lost = [_bare(entry, way) for entry in entries]
    unlogged = (count(way.account, "queue_packets") or 0) - sum(item.cause == QUEUE for item in lost)
    if unlogged > 0:
        notes.append(
            f"{way.where}: {unlogged} packets were dropped by the queue's discipline, which keeps no log; "
            "they are not in this list."
        )
    if unlogged > 0 or way.direction.jitter_ns:
        reason = "packets left the queue unlogged" if unlogged > 0 else "packets overtake each other on this link"
        return lost, [*notes, f"{way.where}: the packets cannot be identified, because {reason}."]
    for seen in captures:
        indices = _same_packets(way, seen, entries)
        if indices is not None:
            return [_identified(item, seen, index) for item, index in zip(lost, indices, strict=True)], notes
    why = "no capture saw every packet of this direction before the loss, so the packets are not identified."
    advice = "Add a capture without filter on the sending side (the host, or the monitor of its switch)."
    return lost, [*notes, f"{way.where}: {why} {advice}"]


def _bare(entry: _LogEntry, way: _Way) -> Lost:
    """What the log alone says."""
    size = entry.wire_bytes - way.direction.overhead_bytes
    return Lost(entry.t_s, entry.cause, way.link, way.direction.name, _place_of(entry.cause), size)


def _place_of(cause: str) -> str:
    return QUEUE if cause == QUEUE else ARRIVAL


def _same_packets(way: _Way, seen: _Seen, entries: Sequence[_LogEntry]) -> list[int] | None:
    """For each packet of the log, the index among the capture's IP headers of the packet that it speaks of; None unless
    everything agrees.
    """
    offered = way.offered(seen)
    if offered is None:
        return None
    dropped = np.array([entry.ordinal - 1 for entry in entries if entry.cause == QUEUE], dtype=np.int64)
    arriving = np.setdiff1d(np.arange(len(offered)), dropped)
    indices: list[int] = []
    for entry in entries:
        order = np.arange(len(offered)) if entry.cause == QUEUE else arriving
        if not 0 < entry.ordinal <= len(order):
            return None
        index = int(offered[order[entry.ordinal - 1]])
        size = int(seen.headers.ip_bytes[index]) + way.direction.overhead_bytes
        if size != entry.wire_bytes or seen.sent_s(index) > entry.t_s:
            return None
        indices.append(index)
    return indices


def _owner(plan: Plan, address: ipaddress.IPv4Address) -> str | None:
    """The node with this address: on one of its interfaces, or in a prefix that its own programs have."""
    for link in plan.network.all_links:
        for end in link.ends:
            if end.ip and address == ipaddress.IPv4Interface(end.ip).ip:
                return end.node
    for node in plan.network.nodes:
        for route in () if isinstance(node, Switch) else node.routes:
            if route.via is None and route.to != "default" and address in ipaddress.IPv4Network(route.to):
                return node.name
    return None


def _identified(lost: Lost, seen: _Seen, index: int) -> Lost:
    record = int(seen.headers.record[index])
    protocol = int(seen.headers.protocol[index])
    near, far = (
        str(ipaddress.IPv4Address(int(address[index]))) for address in (seen.headers.source, seen.headers.destination)
    )
    named = replace(
        lost,
        protocol=PROTOCOLS.get(protocol, str(protocol)),
        source=near,
        destination=far,
        capture=seen.name,
        frame=record + 1,
        sent_s=round(seen.sent_s(index), 9),
    )
    at = np.flatnonzero(seen.packets.frame == record + 1)
    if not len(at):
        return replace(named, repair="never" if protocol == ICMP else "unknown")
    packet = int(at[0])
    named = replace(
        named,
        source=f"{near}:{seen.packets.source_port[packet]}",
        destination=f"{far}:{seen.packets.destination_port[packet]}",
        payload_bytes=int(seen.packets.payload_bytes[packet]),
        repair="never" if protocol == pcap.UDP else "unknown",
    )
    if protocol not in pcap.TCP_HEADERS:
        return named
    flags = int(seen.packets.flags[packet])
    connection, place = _in_connection(seen, packet)
    return replace(
        named, flags="".join(letter for bit, letter in FLAG_LETTERS if flags & bit), seq=int(connection.seq[place])
    )


def _in_connection(seen: _Seen, packet: int) -> tuple[pcap.Connection, int]:
    """The connection of a TCP packet, and the packet's place in it."""
    for connection in seen.connections:
        at = int(np.searchsorted(connection.packet, packet))
        if at < len(connection.packet) and connection.packet[at] == packet:
            return connection, at
    raise AssertionError("every TCP packet is in a connection")


def _repaired(found: list[Lost], captures: list[_Seen]) -> list[Lost]:
    """The losses with the time of their repair, and the time at which each was sent."""
    by_name = {seen.name: seen for seen in captures}
    lost_frames: dict[str, set[int]] = {}
    for lost in found:
        if lost.frame is not None:
            lost_frames.setdefault(lost.capture, set()).add(lost.frame)
    return [
        _with_repair(lost, by_name[lost.capture], lost_frames[lost.capture]) if lost.frame is not None else lost
        for lost in found
    ]


def _with_repair(lost: Lost, seen: _Seen, lost_frames: set[int]) -> Lost:
    at = np.flatnonzero(seen.packets.frame == lost.frame)
    if not len(at) or lost.seq is None:
        return lost
    connection, place = _in_connection(seen, int(at[0]))
    # SYN and FIN take a sequence number each (RFC 9293 §3.4) and are sent again like a byte.
    size = connection.payload_bytes + (connection.flags & pcap.SYN != 0) + (connection.flags & pcap.FIN != 0)
    if not size[place]:
        return replace(lost, repair="no data")
    missing = [(int(connection.seq[place]), int(connection.seq[place] + size[place]))]
    sent = np.flatnonzero((connection.from_client == connection.from_client[place]) & (size > 0))
    for index in sent.tolist():
        frame = int(seen.packets.frame[connection.packet[index]])
        if frame in lost_frames:
            continue
        missing = _without(missing, int(connection.seq[index]), int(connection.seq[index] + size[index]))
        if not missing:
            if index < place:
                return replace(lost, repair="arrived before")
            return replace(
                lost, repair="repaired", repaired_s=round(float(connection.t_s[index]), 9), repaired_frame=frame
            )
    return replace(lost, repair="never")


def _without(ranges: list[tuple[int, int]], left: int, right: int) -> list[tuple[int, int]]:
    """The ranges without [left, right)."""
    parts = [part for low, high in ranges for part in ((low, min(high, left)), (max(low, right), high))]
    return [(low, high) for low, high in parts if low < high]


def _without_log(way: _Way, captures: Sequence[_Seen]) -> tuple[list[Lost], list[str]]:
    """The losses of a direction without verdict log: what a capture before it saw and one behind it did not, if their
    number is that of the account.
    """
    counts = {cause: packets for cause in LOSS_CAUSES if (packets := count(way.account, f"{cause}_packets"))}
    if not counts:
        return [], []
    losses = ", ".join(f"{packets} {cause}" for cause, packets in counts.items())
    # With one cause, it is the cause of each; with several, the captures do not tell them apart.
    cause, place = " or ".join(counts), " or ".join(dict.fromkeys(map(_place_of, counts)))
    for before in captures:
        offered = way.offered(before)
        if offered is None:
            continue
        for behind in captures:
            missing = _missing(way, before, behind, offered)
            if behind is not before and len(missing) == sum(counts.values()):
                bare = Lost(0.0, cause, way.link, way.direction.name, place, 0)
                how = f"these packets are found by comparing the captures {before.name} and {behind.name}."
                note = f"{way.where}: {losses}; no verdict log, so {how} Their time is that of their sending."
                return [_compared(before, index, bare) for index in missing], [note]
    probe = f"{{kind: losses, link: {way.link}, direction: {way.direction.name}}}"
    note = f"{way.where}: {losses}, not in this list: the scenario has no verdict log there."
    return [], [f"{note} Add a probe {probe}."]


def _missing(way: _Way, before: _Seen, behind: _Seen, offered: pcap.Ints) -> list[int]:
    """The packets that one capture saw and the other did not."""
    arrived = Counter(_identity(behind, index) for index in way.crossing(behind.headers).tolist())
    missing = []
    for index in offered.tolist():
        identity = _identity(before, index)
        if arrived[identity] > 0:
            arrived[identity] -= 1
        else:
            missing.append(index)
    return missing


def _identity(seen: _Seen, index: int) -> bytes:
    """What no router changes of a packet: length, identification and fragment (RFC 791 §3.1), addresses, and the first
    bytes of what it carries.
    """
    at = int(seen.headers.start[index])
    header = (seen.records.content[at] & 0x0F) * 4
    return (
        seen.records.content[at + 2 : at + 8]
        + seen.records.content[at + 12 : at + 20]
        + seen.records.content[at + header : at + header + 20]
    )


def _compared(seen: _Seen, index: int, lost: Lost) -> Lost:
    """A loss that no log has: its time is that of its frame."""
    named = _identified(replace(lost, ip_bytes=int(seen.headers.ip_bytes[index])), seen, index)
    return replace(named, t_s=named.sent_s or 0.0)


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
    columns = [
        *map(Column, ("time (s)", "cause", "place", "packet")),
        *numbers("seq", "bytes", "frame", "repaired (s)"),
    ]
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


def captures_with_losses(losses: Losses) -> list[str]:
    """The captures in which lost packets were identified, that with the most of them first."""
    names = [lost.capture for lost in losses.lost if lost.capture]
    return sorted(set(names), key=lambda name: (-names.count(name), name))


def comments(lost: Sequence[Lost], capture: str) -> dict[int, str]:
    """The comment of each frame of a capture that was lost, or that repaired a loss."""
    texts: dict[int, list[str]] = {}
    for item in lost:
        if item.capture != capture or item.frame is None:
            continue
        end: str = "never sent again" if item.repair == "never" else item.repair
        if item.repaired_frame is not None:
            end = f"sent again in frame {item.repaired_frame}"
            texts.setdefault(item.repaired_frame, []).append(f"repairs frame {item.frame}")
        at = f"{item.cause}, {_place(item)}, at {item.t_s:.6f} s"
        texts.setdefault(item.frame, []).append(f"lost: {at}; {end}")
    return {frame: "; ".join(parts) for frame, parts in texts.items()}


def _place(lost: Lost) -> str:
    return f"{lost.link} {lost.direction} {lost.place}"


def _packet(lost: Lost) -> str:
    if not lost.capture:
        return f"{lost.ip_bytes} bytes, not identified"
    flags = f" [{lost.flags}]" if lost.flags else ""
    return f"{lost.protocol} {lost.source} > {lost.destination}{flags}"


def _number(value: int | None) -> str:
    return NOTHING if value is None else str(value)


def sender_s_capture(cell: RunCell) -> str:
    """The capture at the sender of a cell's one transfer; "" if there is none, or more than one transfer."""
    senders = [workload.from_ for workload in cell.plan.cell.workloads if DATA_FLOWS[workload.kind].has_formulas]
    return next((probe.name for probe in cell.plan.cell.probes if senders == [probe.captured_node]), "")


def resend_columns(cell: RunCell, run: str) -> dict[str, str]:
    """For formulas: `resends`, `resends_CAUSE`, and `resend_causes` and `resend_frames`, all in order of time.

    Nothing for a cell that has no log or not one transfer.

    Raises:
        ResultError: a file of the cell is damaged.
    """
    capture, is_logged = sender_s_capture(cell), any(probe.logged_direction for probe in cell.plan.cell.probes)
    if not capture or not is_logged or cell.status != "completed":
        return {}
    losses, seen = find_losses(cell, run), _read(cell, capture)
    lost = {item.frame: item.cause for item in losses.lost if item.capture == seen.name and item.frame is not None}
    largest = max(seen.connections, key=lambda connection: int(connection.payload_bytes.sum()), default=None)
    resent = resends(largest, seen.packets.frame, lost) if largest else []
    causes = [cause for _, cause in resent]
    return {
        "resends": str(len(causes)),
        **{f"resends_{cause}": str(causes.count(cause)) for cause in CAUSES},
        "resend_causes": " ".join(causes),
        "resend_frames": " ".join(str(frame) for frame, _ in resent),
    }


def resends(connection: pcap.Connection, frames: pcap.Ints, lost: dict[int, str]) -> list[tuple[int, str]]:
    """The frame of each data packet whose first byte was sent before, and its cause, in order of time: why the latest
    earlier copy was lost, or `superfluous` if an earlier copy was not lost. `lost`: from frames, which `frames`
    numbers, to their cause.
    """
    sent = [int(connection.payload_bytes[connection.from_client == side].sum()) for side in (False, True)]
    is_data = (connection.from_client == (sent[1] >= sent[0])) & (connection.payload_bytes > 0)
    found: list[tuple[int, str]] = []
    # What became of each copy: its first byte, the byte behind it, and why it was lost (None: it was not).
    copies: list[tuple[int, int, str | None]] = []
    sent_to = 0
    for index in np.flatnonzero(is_data).tolist():
        left, frame = int(connection.seq[index]), int(frames[connection.packet[index]])
        # What is sent for the first time has no copies to look for.
        fates = [cause for low, high, cause in copies if low <= left < high] if left < sent_to else []
        if fates:
            found.append((frame, SUPERFLUOUS if None in fates else str(fates[-1])))
        copies.append((left, left + int(connection.payload_bytes[index]), lost.get(frame)))
        sent_to = max(sent_to, copies[-1][1])
    return found
