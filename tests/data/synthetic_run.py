"""A run folder without a lab: plans, records and captures as the lab program writes them, from a small model of TCP.

The model is there to make packets, not to be TCP: a window that doubles per round trip up to a limit, one segment per
acknowledgement afterwards, fast retransmit on three duplicates with SACK blocks, a coarse timeout. Everything follows
from the arguments; packets are built with dpkt, which shares no code with the reader under test.
"""

from __future__ import annotations

import heapq
import json
import random
import socket
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import dpkt

from scpslab import plan as plans
from scpslab import scenario
from scpslab.measure.packets import Packets
from scpslab.plan import Plan
from scpslab.plan.flows import ways
from scpslab.scenario import planning
from tests import made_records

from scpslab.kinds.workloads.bulk.plan import Bulk

SCENARIO = Path(__file__).parent / "fig04-golden.yaml"
EPOCH_NS = 1_700_000_000_000_000_000
CLIENT, SERVER = ("10.1.0.1", 40001), ("10.2.0.2", 5001)
CLIENT_MAC, SERVER_MAC = b"\x02\0\0\0\0\x01", b"\x02\0\0\0\0\x02"
RTO_S = 1.5


@dataclass
class Transfer:
    """What one simulated transfer was: packets at both ends and the figures an analysis must find again."""

    source: list[tuple[float, dpkt.tcp.TCP, bool]] = field(default_factory=list)
    sink: list[tuple[float, dpkt.tcp.TCP, bool]] = field(default_factory=list)
    retransmissions: int = 0
    lost: int = 0
    first_data_s: float = 0.0
    last_ack_s: float = 0.0
    close_s: float = 0.0


def simulate(  # noqa: C901, PLR0915 (one loop over one queue of events; its parts share all state)
    total_bytes: int,
    mss: int,
    losses: set[int],
    *,
    window_segments: int = 16,
    owd_s: float = 0.265,
    rate_bps: int = 2_000_000,
    isn: int = 2**32 - 5000,
    swapped: frozenset[int] = frozenset(),
    scale: int = 3,
) -> Transfer:
    """One transfer.

    `losses`: ordinals (from 0) of data packets that do not arrive; `swapped`: those that arrive late, just after the
    next one.
    """
    transfer = Transfer()
    server_isn = 7_000_000
    events: list[tuple[float, int, str, Any]] = []
    tie = iter(range(10**9))

    def at(t_s: float, what: str, detail: Any) -> None:
        heapq.heappush(events, (t_s, next(tie), what, detail))

    def segment(t_s: float, offset: int, size: int) -> dpkt.tcp.TCP:
        flags = dpkt.tcp.TH_ACK | (dpkt.tcp.TH_PUSH if offset + size == total_bytes else 0)
        options = b"\x01\x01\x08\x0a" + int(t_s * 1000).to_bytes(4, "big") + b"\0\0\0\x01"
        return _tcp(CLIENT[1], SERVER[1], isn + 1 + offset, server_isn + 1, flags, 8192, options, bytes(size))

    def acknowledgement(offset: int, blocks: list[tuple[int, int]]) -> dpkt.tcp.TCP:
        options = b"\x01\x01\x08\x0a\0\0\0\x02\0\0\0\x01"
        if blocks:
            edges = b"".join(((isn + 1 + edge) % 2**32).to_bytes(4, "big") for block in blocks[:3] for edge in block)
            options += bytes([1, 1, 5, 2 + len(edges)]) + edges
        return _tcp(
            SERVER[1], CLIENT[1], server_isn + 1, isn + 1 + offset, dpkt.tcp.TH_ACK, 200_000 >> scale, options, b""
        )

    syn_options = b"\x02\x04" + mss.to_bytes(2, "big") + b"\x04\x02\x03\x03" + bytes([scale]) + b"\0\0\0"
    start_s = 1.0
    syn = _tcp(CLIENT[1], SERVER[1], isn, 0, dpkt.tcp.TH_SYN, 65535, syn_options, b"")
    answer = _tcp(SERVER[1], CLIENT[1], server_isn, isn + 1, dpkt.tcp.TH_SYN | dpkt.tcp.TH_ACK, 65535, syn_options, b"")
    transfer.source += [(start_s, syn, True), (start_s + 2 * owd_s, answer, False)]
    transfer.sink += [(start_s + owd_s, syn, True), (start_s + owd_s, answer, False)]

    una, nxt, cwnd, duplicates, sent, recovery_end = 0, 0, 1.0, 0, 0, 0
    link_free_s, arrived, rcv_nxt, timer_of = 0.0, {}, 0, 0  # type: ignore[var-annotated]

    def send(t_s: float, offset: int) -> None:
        nonlocal link_free_s, sent
        size = min(mss, total_bytes - offset)
        packet = segment(t_s, offset, size)
        transfer.source.append((t_s, packet, True))
        link_free_s = max(link_free_s, t_s) + (size + 56) * 8 / rate_bps
        if sent in losses:
            transfer.lost += 1
        else:
            at(link_free_s + owd_s + (0.008 if sent in swapped else 0.0), "arrive", (offset, size, packet))
        sent += 1

    def fill(t_s: float) -> None:
        nonlocal nxt, timer_of
        while nxt < total_bytes and nxt - una < min(int(cwnd), window_segments) * mss:
            send(t_s, nxt)
            nxt = min(nxt + mss, total_bytes)
        timer_of += 1
        at(t_s + RTO_S, "timeout", timer_of)

    at(start_s + 2 * owd_s, "start", None)
    while events and una < total_bytes:
        t_s, _, what, detail = heapq.heappop(events)
        if what == "start":
            fill(t_s)
        elif what == "arrive":
            offset, size, packet = detail
            transfer.sink.append((t_s, packet, True))
            transfer.first_data_s = transfer.first_data_s or t_s
            arrived[offset] = offset + size
            while rcv_nxt in arrived:
                rcv_nxt = arrived[rcv_nxt]
            reply = acknowledgement(rcv_nxt, _blocks(arrived, rcv_nxt))
            transfer.sink.append((t_s, reply, False))
            if rcv_nxt == total_bytes and not transfer.last_ack_s:
                transfer.last_ack_s = t_s
            at(t_s + owd_s, "ack", (rcv_nxt, reply))
        elif what == "ack":
            upto, reply = detail
            transfer.source.append((t_s, reply, False))
            if upto > una:
                una, duplicates = upto, 0
                cwnd += 1
                if una < recovery_end:
                    transfer.retransmissions += 1
                    send(t_s, una)
            elif nxt > una:
                duplicates += 1
                if duplicates == 3:
                    cwnd, recovery_end = max(2.0, cwnd / 2), nxt
                    transfer.retransmissions += 1
                    send(t_s, una)
            fill(t_s)
        elif what == "timeout" and detail == timer_of:
            cwnd, duplicates, recovery_end = 1.0, 0, nxt
            transfer.retransmissions += 1
            send(t_s, una)
            fill(t_s)
    transfer.close_s = t_s
    fin = _tcp(
        CLIENT[1], SERVER[1], isn + 1 + total_bytes, server_isn + 1, dpkt.tcp.TH_FIN | dpkt.tcp.TH_ACK, 8192, b"", b""
    )
    last = _tcp(
        SERVER[1], CLIENT[1], server_isn + 1, isn + 2 + total_bytes, dpkt.tcp.TH_ACK, 200_000 >> scale, b"", b""
    )
    transfer.source += [(t_s, fin, True), (t_s + 2 * owd_s, last, False)]
    transfer.sink += [(t_s + owd_s, fin, True), (t_s + owd_s, last, False)]
    return transfer


def _blocks(arrived: dict[int, int], rcv_nxt: int) -> list[tuple[int, int]]:
    blocks: list[tuple[int, int]] = []
    for start in sorted(offset for offset in arrived if offset > rcv_nxt):
        if blocks and blocks[-1][1] == start:
            blocks[-1] = (blocks[-1][0], arrived[start])
        else:
            blocks.append((start, arrived[start]))
    return blocks[::-1]


def _tcp(
    sport: int, dport: int, seq: int, ack: int, flags: int, window: int, options: bytes, payload: bytes
) -> dpkt.tcp.TCP:
    packet = dpkt.tcp.TCP(
        sport=sport, dport=dport, seq=seq % 2**32, ack=ack % 2**32, flags=flags, win=window, opts=options, data=payload
    )
    packet.off = 5 + len(options) // 4
    return packet


def frame(packet: dpkt.tcp.TCP, from_client: bool) -> bytes:
    """An Ethernet frame as it is on the LAN."""
    near, far = (CLIENT, SERVER) if from_client else (SERVER, CLIENT)
    ip = dpkt.ip.IP(src=socket.inet_aton(near[0]), dst=socket.inet_aton(far[0]), p=dpkt.ip.IP_PROTO_TCP, data=packet)
    ip.len, ip.id = 20 + len(bytes(packet)), _ip_id(packet)
    macs = (SERVER_MAC, CLIENT_MAC) if from_client else (CLIENT_MAC, SERVER_MAC)
    return bytes(dpkt.ethernet.Ethernet(dst=macs[0], src=macs[1], type=dpkt.ethernet.ETH_TYPE_IP, data=ip))


def _ip_id(packet: dpkt.tcp.TCP) -> int:
    """No two packets of a transfer have the same: each has time stamps of its own."""
    return zlib.crc32(b"%d %d %d " % (packet.seq, packet.ack, packet.flags) + bytes(packet.opts)) & 0xFFFF


def write_capture(
    path: Path, packets: list[tuple[float, dpkt.tcp.TCP, bool]], *, snaplen: int = 96, nano: bool = True
) -> None:
    """A pcap file of frames in the order of their times."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, snaplen, 1))
        for t_s, packet, from_client in sorted(packets, key=lambda item: item[0]):
            whole = frame(packet, from_client)
            t_ns = EPOCH_NS + round(t_s * 1e9)
            file.write(
                struct.pack(
                    "<IIII", t_ns // 10**9, t_ns % 10**9 // (1 if nano else 1000), min(len(whole), snaplen), len(whole)
                )
                + whole[:snaplen]
            )


@cache
def _planned() -> Plan:
    (cell,) = scenario.cells(scenario.load(str(SCENARIO)))
    return planning.plan(cell)


def plan(axes: Mapping[str, str], repeat: int, *, total_bytes: int = 60_000) -> Plan:
    """The plan of a cell: that of fig04-golden.yaml at a point of axes that it does not have."""
    cell_id = ",".join([*(f"{name}={value}" for name, value in axes.items()), f"r{repeat}"])
    whole = _planned()
    (transfer,) = whole.cell.workloads
    assert isinstance(transfer, Bulk)
    assert (transfer.to_ip, transfer.port) == SERVER
    key = {"id": cell_id, "scenario": SCENARIO.stem, "axes": dict(axes), "repeat": repeat}
    key |= {"kernel_seed": f"{repeat:064x}"}
    return replace(whole, cell=replace(whole.cell, **key, workloads=(replace(transfer, bytes_=total_bytes),)))


def write_cell(
    run_dir: Path,
    axes: dict[str, str],
    repeat: int,
    transfer: Transfer | None,
    *,
    total_bytes: int = 60_000,
    reason: str = "",
    is_recorded: bool = False,
) -> Path:
    """One cell's folder; without a transfer it is incomplete for `reason`."""
    planned = plan(axes, repeat, total_bytes=total_bytes)
    hops = [(link.name, direction.name) for link in planned.network.links for direction in link.directions]
    folder = run_dir / "cells" / planned.cell.id
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(plans.text(planned), encoding="utf-8")
    status = "completed" if transfer else "incomplete"
    ended = {"status": status, "reason": reason, "epoch_realtime_ns": EPOCH_NS, "virtual_s": 100.0}
    _json(folder / "status.json", ended)
    _json(folder / "environment.json", {})
    if transfer is None:
        return folder
    if is_recorded:
        (folder / "records").mkdir()
        (folder / "records" / "packets.rec").write_bytes(made_records.written(recorded(planned, transfer)))
    write_capture(folder / "captures" / "ws4.pcap", transfer.source)
    write_capture(folder / "captures" / "ws2.pcap", transfer.sink)
    last_data_s = max(t_s for t_s, packet, from_client in transfer.sink if from_client and packet.data)
    opened = {"connect_t_s": 1.0, "connected_t_s": 1.53, "first_write_t_s": 1.53}
    sender = {"event": "sender", **opened, "close_t_s": round(transfer.close_s + 0.53, 9)}
    sender |= {"bytes": total_bytes, "mss_bytes": 1400, "retransmits": transfer.retransmissions, "rtos": 0}
    sender |= {"status": "completed", "error": ""}
    receiver = {"event": "receiver", "accept_t_s": 1.8, "first_data_t_s": round(transfer.first_data_s, 9)}
    receiver |= {"last_data_t_s": round(last_data_s, 9)}
    receiver |= {"bytes": total_bytes, "wrong_bytes": 0, "status": "completed", "error": ""}
    _lines(folder / "records" / "transfer.jsonl", [sender, receiver])
    _lines(folder / "records" / "accounting.jsonl", [_account(link, direction, transfer) for link, direction in hops])
    return folder


def recorded(planned: Plan, transfer: Transfer) -> list[Packets]:
    """The record of its packets: they propagate and are lost on the link `hop`, and pass all others in no time."""
    directions = []
    for from_client, way in zip((True, False), ways(planned, planned.cell.workloads[0]), strict=True):
        near, far = (transfer.source, transfer.sink) if from_client else (transfer.sink, transfer.source)
        flow = made_records.tcp(*((CLIENT, SERVER) if from_client else (SERVER, CLIENT)))
        sent = sorted(((t_s, packet) for t_s, packet, mine in near if mine == from_client), key=lambda one: one[0])
        arrived = {id(packet): t_s for t_s, packet, mine in far if mine == from_client}
        is_there = False
        for hop in way:
            is_hop = hop.link.name == "hop"
            lines = []
            for t_s, packet in sent:
                end_s = arrived.get(id(packet))
                if is_there and end_s is None:
                    continue
                header = 40 + len(packet.opts)
                lines.append(
                    made_records.Line(
                        flow,
                        offered=_ns(end_s if is_there else t_s),
                        arrived=_ns(t_s + 0.1 if end_s is None else end_s if is_hop or is_there else t_s),
                        fate="corrupt" if is_hop and end_s is None else "delivered",
                        wire=header + len(packet.data) + hop.direction.overhead_bytes,
                        id_=_ip_id(packet),
                        payload=len(packet.data),
                        sequence=packet.seq,
                        acknowledgement=packet.ack,
                        window=packet.win,
                        flags=packet.flags,
                    )
                )
            lines.sort(key=lambda line: line.offered)
            directions.append(made_records.packets(*hop.place, lines))
            is_there |= is_hop
    return directions


def _ns(t_s: float | None) -> int:
    return round((t_s or 0.0) * 1e9)


def _account(link: str, direction: str, transfer: Transfer) -> dict[str, Any]:
    corrupt = transfer.lost if (link, direction) == ("hop", "forward") else 0
    offered = sum(1 for _, _, from_client in transfer.source if from_client == (direction == "forward"))
    counts = {"queue_packets": 0, "corrupt_packets": corrupt, "outage_packets": 0, "policy_packets": 0}
    return {
        "link": link,
        "direction": direction,
        "offered_packets": offered,
        **counts,
        "delivered_packets": offered - corrupt,
        "flipped_packets": 0,
        "closes": True,
    }


def write_run(run_dir: Path, *, seed: int = 1, repeats: int = 2) -> Path:
    """A whole run: every loss probability stands for a BER; the last repeat at the worst point of the first stack is
    incomplete.
    """
    stacks, bers = ("reno", "bbr"), ("0", "1e-06", "1e-05")
    run_dir.mkdir(parents=True, exist_ok=True)
    _json(run_dir / "manifest.json", {"format": 1, "scenario": "fig04-golden", "status": "completed"})
    random_losses = random.Random(seed)
    for stack in stacks:
        for ber in bers:
            for repeat in range(1, repeats + 1):
                axes = {"stack": stack, "ber": ber}
                if (stack, ber, repeat) == (stacks[0], bers[-1], repeats):
                    write_cell(run_dir, axes, repeat, None, reason="transfer: sender gave up: Connection timed out")
                    continue
                losses = {ordinal for ordinal in range(400) if random_losses.random() < min(0.2, float(ber) * 12_000)}
                window = 24 if stack == "bbr" else 12
                write_cell(run_dir, axes, repeat, simulate(60_000, 1400, losses, window_segments=window))
    return run_dir


def _json(path: Path, fields: dict[str, Any]) -> None:
    path.write_text(json.dumps(fields, indent=1) + "\n", encoding="utf-8")


def _lines(path: Path, lines: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
