"""The record of packets for other programs: rows of a table, and frames with the fate of each as its comment."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator, Sequence
from dataclasses import astuple

from scpslab.measure.packets import FATES, NEVER, TCP_HEADERS, UDP, Flow, Packets
from scpslab.measure.pcapng import Frame, Interface, written

COLUMNS = (
    *("link", "direction", "packet", "offered_s", "waited_bytes", "due_s", "left_s", "arrived_s", "fate", "bit_errors"),
    *("wire_bytes", "from_ip", "from_port", "to_ip", "to_port", "protocol", "ip_id", "payload_bytes"),
    *("seq", "ack", "flags", "window", "owner"),
)
SECOND_NS = 10**9
LINKTYPE_RAW = 101
IPV4_BYTES, UDP_BYTES, TCP_BYTES = 20, 8, 20


def rows(directions: Sequence[Packets]) -> Iterator[tuple[object, ...]]:
    """A line for every packet, in the order of the links and of the offers; times in s since the epoch."""
    for packets in directions:
        tcp = packets.is_tcp.tolist()
        columns = (
            *(packets.offered_ns, packets.waited_bytes, packets.due_ns, packets.left_ns, packets.arrived_ns),
            *(packets.fate, packets.bit_errors, packets.wire_bytes, packets.flow, packets.id_, packets.payload),
            *(packets.sequence, packets.acknowledgement, packets.flags, packets.window),
        )
        for row, values in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            offered, waited, due, left, arrived, fate, errors, wire, flow, id_, payload, *transport = values
            times = (seconds(time) for time in (due, left, arrived))
            from_ip, to_ip, from_port, to_port, protocol, _, owner = astuple(packets.flows[flow])
            yield (
                *(packets.link, packets.direction, row + 1, seconds(offered), waited, *times, FATES[fate], errors),
                *(wire, from_ip, from_port, to_ip, to_port, protocol, id_, payload),
                *(transport if tcp[row] else [None] * len(transport)),
                owner,
            )


def seconds(t_ns: int) -> str | None:
    """Nanoseconds as seconds, all digits."""
    if t_ns == NEVER:
        return None
    sign = "-" if t_ns < 0 else ""
    return f"{sign}{abs(t_ns) // SECOND_NS}.{abs(t_ns) % SECOND_NS:09d}"


def pcapng(directions: Sequence[Packets], epoch_realtime_ns: int) -> bytes:
    """The packets as frames at the times of their offers, with what became of each as its comment; an interface for
    each direction.

    What the record has of a packet is there, and its length; options and payload are not.
    """
    interfaces = [Interface(f"{one.link}.{one.direction}", LINKTYPE_RAW, 0) for one in directions]
    frames = [
        Frame(number, epoch_realtime_ns + int(packets.offered_ns[row]), content, whole, _comment(packets, row))
        for number, packets in enumerate(directions)
        for row, (content, whole) in enumerate(_frames(packets))
    ]
    return written(interfaces, sorted(frames, key=lambda frame: frame.t_ns))


def _comment(packets: Packets, row: int) -> str:
    words = [packets.flows[packets.flow[row]].owner, FATES[packets.fate[row]]]
    if packets.bit_errors[row]:
        words.append(f"{packets.bit_errors[row]} bit errors")
    words.append(f"behind {packets.waited_bytes[row]} B")
    for word, times in (("due", packets.due_ns), ("left", packets.left_ns), ("arrived", packets.arrived_ns)):
        if (time := seconds(int(times[row]))) is not None:
            words.append(f"{word} {time} s")
    return ", ".join(words)


def _frames(packets: Packets) -> Iterator[tuple[bytes, int]]:
    """Each packet's bytes as far as they are known, and its length."""
    heads = iter(packets.heads)
    for row in range(len(packets)):
        flow = packets.flows[packets.flow[row]]
        payload = int(packets.payload[row])
        if packets.is_tcp[row]:
            transport = _tcp(packets, row, flow)
        elif flow.protocol == UDP:
            transport = struct.pack(">HHHH", flow.from_port, flow.to_port, UDP_BYTES + payload, 0)
        elif flow.protocol in TCP_HEADERS:
            transport = b""
        else:
            transport, payload = bytes(next(heads, b"")), 0
        yield _ip(flow, int(packets.id_[row]), transport, len(transport) + payload)


def _tcp(packets: Packets, row: int, flow: Flow) -> bytes:
    numbers = (int(column[row]) for column in (packets.sequence, packets.acknowledgement))
    offset = TCP_BYTES // 4 << 4
    return struct.pack(
        ">HHIIBBHHH", flow.from_port, flow.to_port, *numbers, offset, packets.flags[row], packets.window[row], 0, 0
    )


def _ip(flow: Flow, id_: int, transport: bytes, length: int) -> tuple[bytes, int]:
    source, target = ipaddress.ip_address(flow.from_ip), ipaddress.ip_address(flow.to_ip)
    if source.version == 6 and flow.type_ == 0x86DD:
        header = struct.pack(">IHBB", 6 << 28, length, flow.protocol, 64) + source.packed + target.packed
    else:
        fields = (0x45, 0, IPV4_BYTES + length, id_, 0, 64, flow.protocol, 0)
        header = struct.pack(">BBHHHBBH", *fields) + source.packed[-4:] + target.packed[-4:]
    return header + transport, len(header) + length
