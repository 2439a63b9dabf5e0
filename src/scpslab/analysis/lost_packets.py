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
from pathlib import Path
from typing import Any, Literal

import numpy as np

from scpslab.analysis.capture import (
    ACK,
    FIN,
    RST,
    SYN,
    TCP_HEADERS,
    UDP,
    Connection,
    Ints,
    IpHeaders,
    Packets,
    Records,
    decode,
    read_ip_headers,
    read_records,
    split_connections,
)
from scpslab.analysis.metrics.base import count, number
from scpslab.analysis.output import NOTHING, Column, Report, Row, numbers
from scpslab.analysis.run import RunCell, cut_short
from scpslab.plan import Plan
from scpslab.plan.links import LOSS_CAUSES, QUEUE, Direction
from scpslab.plan.nodes import Switch
from scpslab.plan.paths import NoPathError, Paths
from scpslab.runs import CellFiles

from scpslab.kinds.probes.capture.plan import Capture
from scpslab.kinds.probes.verdicts.plan import Verdicts
from scpslab.kinds.workloads.bulk.plan import Bulk

ARRIVAL = "arrival"
FLAG_LETTERS = ((SYN, "S"), (FIN, "F"), (RST, "R"), (ACK, "A"))
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
    records: Records
    headers: IpHeaders
    packets: Packets
    connections: list[Connection]


def find_losses(cell: RunCell, run: str) -> Losses:
    """Reads verdict logs, accounts and captures of a cell.

    Raises:
        ResultError: a file of the cell is damaged.
    """
    captures = list(_captures(cell))
    accounts = {(str(line.get("link")), str(line.get("direction"))): line for line in cell.records("accounting")}
    found: list[Lost] = []
    notes = [cut_short(capture_file(cell, seen.name)) for seen in captures if seen.packets.is_truncated]
    logged: set[tuple[str, str]] = set()
    for probe in (probe for probe in cell.plan.cell.probes if isinstance(probe, Verdicts)):
        place = (probe.link, probe.direction)
        if place in logged:
            continue
        logged.add(place)
        lost, said = _of_direction(cell, probe, accounts.get(place, {}), captures)
        found += lost
        notes += said
    for place, account in accounts.items():
        if place not in logged:
            lost, said = _without_log(cell, place, account, captures)
            found += lost
            notes += said
    repaired = _repaired(found, captures)
    return Losses(
        run, cell.id, tuple(sorted(repaired, key=lambda lost: (lost.t_s, lost.link, lost.direction))), tuple(notes)
    )


def capture_file(cell: RunCell, name: str) -> Path:
    """The file of a capture that `Lost.capture` names."""
    return CellFiles(cell.folder).capture(name)


def _captures(cell: RunCell) -> Iterable[_Seen]:
    for probe in cell.plan.cell.probes:
        path = CellFiles(cell.folder).capture(probe.name)
        if isinstance(probe, Capture) and path.is_file():
            records = read_records(path.read_bytes(), str(path))
            packets = decode(records)
            yield _Seen(
                probe.name,
                cell.epoch_realtime_ns or 0,
                records,
                read_ip_headers(records),
                packets,
                split_connections(packets, cell.epoch_realtime_ns),
            )


def _of_direction(
    cell: RunCell, probe: Verdicts, account: dict[str, Any], captures: list[_Seen]
) -> tuple[list[Lost], list[str]]:
    """The losses in one verdict log, identified in a capture if there is one that saw the direction whole."""
    where = f"{probe.link}, {probe.direction} direction"
    notes: list[str] = []
    lines: list[dict[str, Any]] = []
    for line in cell.records(probe.name):
        if line.get("event") == "log-full":
            notes.append(f"{where}: the verdict log was full; {line.get('missing')} losses are not in it.")
        elif None not in (count(line, "ordinal"), count(line, "wire_bytes"), number(line, "t_s")):
            lines.append(line)
    direction = _direction(cell.plan, probe)
    if direction is None or not lines:
        return [], notes
    lost = [_bare(line, probe, direction) for line in lines]
    unlogged = (count(account, "queue_packets") or 0) - sum(one.cause == QUEUE for one in lost)
    if unlogged > 0:
        notes.append(
            f"{where}: {unlogged} packets were dropped by the queue's discipline, which keeps no log; "
            "they are not in this list."
        )
    if unlogged > 0 or direction.jitter_ns:
        reason = "packets left the queue unlogged" if unlogged > 0 else "packets overtake each other on this link"
        return lost, [*notes, f"{where}: the packets cannot be identified, because {reason}."]
    for seen in captures:
        frames = _same_packets(cell, seen, probe, direction, lines, account)
        if frames is not None:
            return [_identified(one, seen, index) for one, index in zip(lost, frames, strict=True)], notes
    said = f"{where}: no capture saw every packet of this direction before the loss, so the packets are not identified."
    return lost, [
        *notes,
        f"{said} Add a capture without filter on the sending side (the host, or the monitor of its switch).",
    ]


def _bare(line: dict[str, Any], probe: Verdicts, direction: Direction) -> Lost:
    """What the log alone says."""
    cause = str(line.get("verdict"))
    size = (count(line, "wire_bytes") or 0) - direction.overhead_bytes
    return Lost(float(line["t_s"]), cause, probe.link, probe.direction, QUEUE if cause == QUEUE else ARRIVAL, size)


def _direction(plan: Plan, probe: Verdicts) -> Direction | None:
    return next(
        (
            item
            for link in plan.network.links
            if link.name == probe.link
            for item in link.directions
            if item.name == probe.direction
        ),
        None,
    )


def _same_packets(
    cell: RunCell,
    seen: _Seen,
    probe: Verdicts,
    direction: Direction,
    lines: list[dict[str, Any]],
    account: dict[str, Any],
) -> list[int] | None:
    """For each line of the log, the index among the capture's IP headers of the packet that it speaks of; None unless
    everything agrees.
    """
    offered = _over(cell.plan, seen.headers, probe)
    sizes = seen.headers.ip_bytes[offered] + direction.overhead_bytes
    if len(offered) != count(account, "offered_packets") or int(sizes.sum()) != count(account, "offered_bytes"):
        return None
    dropped = np.array([line["ordinal"] - 1 for line in lines if line.get("verdict") == QUEUE], dtype=np.int64)
    arriving = np.setdiff1d(np.arange(len(offered)), dropped)
    found: list[int] = []
    for line in lines:
        order = np.arange(len(offered)) if line.get("verdict") == QUEUE else arriving
        if not 0 < line["ordinal"] <= len(order):
            return None
        at = int(order[line["ordinal"] - 1])
        sent_s = (int(seen.records.t_ns[seen.headers.record[offered[at]]]) - seen.epoch_ns) / 1e9
        if int(sizes[at]) != line["wire_bytes"] or sent_s > line["t_s"]:
            return None
        found.append(int(offered[at]))
    return found


def _over(plan: Plan, headers: IpHeaders, probe: Verdicts) -> Ints:
    """Indices of the packets whose way leads over the probe's direction."""
    pairs, label = np.unique(np.stack([headers.source, headers.destination], axis=1), axis=0, return_inverse=True)
    paths = plan.network.paths
    crosses = np.array(
        [_crosses(plan, paths, probe, source, destination) for source, destination in pairs.tolist()], dtype=np.bool_
    )
    return np.flatnonzero(crosses[label.reshape(-1)])


def _crosses(plan: Plan, paths: Paths, probe: Verdicts, source: int, destination: int) -> bool:
    ends = [_owner(plan, ipaddress.IPv4Address(address)) for address in (source, destination)]
    if ends[0] is None or ends[1] is None:
        return False
    try:
        hops = paths.path(ends[0], ends[1], str(ipaddress.IPv4Address(destination)))
    except NoPathError:
        return False
    return any((hop.link.name, hop.direction.name) == (probe.link, probe.direction) for hop in hops)


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
    sent_s = round((int(seen.records.t_ns[record]) - seen.epoch_ns) / 1e9, 9)
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
        sent_s=sent_s,
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
        repair="never" if protocol == UDP else "unknown",
    )
    if protocol not in TCP_HEADERS:
        return named
    flags = int(seen.packets.flags[packet])
    connection, place = _in_connection(seen, packet)
    return replace(
        named, flags="".join(letter for bit, letter in FLAG_LETTERS if flags & bit), seq=int(connection.seq[place])
    )


def _in_connection(seen: _Seen, packet: int) -> tuple[Connection, int]:
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
    size = connection.payload_bytes + (connection.flags & SYN != 0) + (connection.flags & FIN != 0)
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


def _without_log(
    cell: RunCell, place: tuple[str, str], account: dict[str, Any], captures: list[_Seen]
) -> tuple[list[Lost], list[str]]:
    """The losses of a direction without verdict log: what a capture before it saw and one behind it did not, if their
    number is that of the account.
    """
    counts = {cause: packets for cause in LOSS_CAUSES if (packets := count(account, f"{cause}_packets"))}
    said = ", ".join(f"{packets} {cause}" for cause, packets in counts.items())
    probe = Verdicts(name="log", link=place[0], direction=place[1])
    direction = _direction(cell.plan, probe)
    if not counts or direction is None:
        return [], []
    where = f"{probe.link}, {probe.direction} direction"
    for before in captures:
        offered = _over(cell.plan, before.headers, probe)
        sizes = before.headers.ip_bytes[offered] + direction.overhead_bytes
        if len(offered) != count(account, "offered_packets") or int(sizes.sum()) != count(account, "offered_bytes"):
            continue
        for behind in captures:
            arrived = Counter(_identity(behind, index) for index in _over(cell.plan, behind.headers, probe).tolist())
            missing = []
            for index in offered.tolist():
                identity = _identity(before, index)
                if arrived[identity] > 0:
                    arrived[identity] -= 1
                else:
                    missing.append(index)
            if behind is not before and len(missing) == sum(counts.values()):
                # With one cause, it is the cause of each; with several, the captures do not tell them apart.
                cause = " or ".join(counts)
                spots = dict.fromkeys(QUEUE if one == QUEUE else ARRIVAL for one in counts)
                note = (
                    f"{where}: {said}; no verdict log, so these packets are found by comparing the captures "
                    f"{before.name} and {behind.name}."
                )
                return [
                    _compared(before, index, Lost(0.0, cause, *place, " or ".join(spots), 0)) for index in missing
                ], [f"{note} Their time is that of their sending."]
    probe_to_add = f"{{kind: verdicts, link: {probe.link}, direction: {probe.direction}}}"
    return [], [
        f"{where}: {said}, not in this list: the scenario has no verdict log there. Add a probe {probe_to_add}."
    ]


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


def report(losses: Losses) -> Report:
    """The losses as they are shown, a line each."""
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
    said: dict[int, list[str]] = {}
    for one in lost:
        if one.capture != capture or one.frame is None:
            continue
        end = (
            f"sent again in frame {one.repaired_frame}"
            if one.repaired_frame
            else {"never": "never sent again"}.get(one.repair, one.repair)
        )
        said.setdefault(one.frame, []).append(f"lost: {one.cause}, {_place(one)}, at {one.t_s:.6f} s; {end}")
        if one.repaired_frame is not None:
            said.setdefault(one.repaired_frame, []).append(f"repairs frame {one.frame}")
    return {frame: "; ".join(parts) for frame, parts in said.items()}


def _place(lost: Lost) -> str:
    return f"{lost.link} {lost.direction} {lost.place}"


def _packet(lost: Lost) -> str:
    if not lost.capture:
        return f"{lost.ip_bytes} bytes, not identified"
    flags = f" [{lost.flags}]" if lost.flags else ""
    return f"{lost.protocol} {lost.source} > {lost.destination}{flags}"


def _number(value: int | None) -> str:
    return NOTHING if value is None else str(value)


@dataclass(frozen=True)
class Resend:
    """A data packet whose first byte was sent before.

    `t_s` since the epoch; `frame` counts as Wireshark does; `seq` from the first payload byte. `cause`: why the latest
    earlier copy was lost, or `superfluous` if an earlier copy was not lost.
    """

    t_s: float
    frame: int
    seq: int
    cause: str


def find_resends(cell: RunCell, losses: Losses, capture: str) -> tuple[Resend, ...]:
    """The resends of the connection with the most data in a capture on the sending side, by time.

    Raises:
        ResultError: the capture is damaged.
    """
    path = capture_file(cell, capture)
    packets = decode(read_records(path.read_bytes(), str(path)))
    connections = split_connections(packets, cell.epoch_realtime_ns)
    if not connections:
        return ()
    causes = {lost.frame: lost.cause for lost in losses.lost if lost.capture == capture and lost.frame is not None}
    return tuple(_resends(max(connections, key=lambda one: int(one.payload_bytes.sum())), packets.frame, causes))


def _resends(connection: Connection, frames: Ints, causes: dict[int, str]) -> list[Resend]:
    sent = [int(connection.payload_bytes[connection.from_client == side].sum()) for side in (False, True)]
    is_data = (connection.from_client == (sent[1] >= sent[0])) & (connection.payload_bytes > 0)
    found: list[Resend] = []
    # What became of each copy: its first byte, the byte behind it, and why it was lost (None: it was not).
    copies: list[tuple[int, int, str | None]] = []
    for index in np.flatnonzero(is_data).tolist():
        left, frame = int(connection.seq[index]), int(frames[connection.packet[index]])
        fates = [cause for low, high, cause in copies if low <= left < high]
        if fates:
            found.append(
                Resend(
                    round(float(connection.t_s[index]), 9),
                    frame,
                    left,
                    SUPERFLUOUS if None in fates else str(fates[-1]),
                )
            )
        copies.append((left, left + int(connection.payload_bytes[index]), causes.get(frame)))
    return found


def resend_columns(cell: RunCell, run: str) -> dict[str, str]:
    """For formulas: `resends`, `resends_CAUSE`, and `resend_causes`, all causes in order of time.

    Nothing for a cell that has no log or not one transfer.
    """
    transfers = [workload for workload in cell.plan.cell.workloads if isinstance(workload, Bulk)]
    captures = [
        probe.name
        for probe in cell.plan.cell.probes
        if isinstance(probe, Capture) and [workload.from_ for workload in transfers] == [probe.node]
    ]
    if (
        not captures
        or not any(isinstance(probe, Verdicts) for probe in cell.plan.cell.probes)
        or cell.status != "completed"
    ):
        return {}
    causes = [resend.cause for resend in find_resends(cell, find_losses(cell, run), captures[0])]
    counts = Counter(causes)
    return {
        "resends": str(len(causes)),
        **{f"resends_{cause}": str(counts[cause]) for cause in CAUSES},
        "resend_causes": " ".join(causes),
    }
