"""The record of packets for other programs: rows of a table, frames of a pcapng (draft-ietf-opsawg-pcapng), which
Wireshark and tshark show, with the fate of each as its comment, and connections as qlog.
"""

import ipaddress
import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from heapq import heappop, heappush
from operator import itemgetter
from typing import Any

import numpy as np

from scpslab.core.addresses import end
from scpslab.measure.connections import ACK, unwrapped
from scpslab.measure.losses import NOBODY, Fates, OfFlow
from scpslab.measure.packets import FATES, TCP_HEADERS, UDP, Flow, Packets, seconds
from scpslab.measure.record import Record
from scpslab.measure.states import NONE, States

SECTION_HEADER, INTERFACE_DESCRIPTION, ENHANCED_PACKET = 0x0A0D0D0A, 1, 6
BYTE_ORDER_MAGIC, UNKNOWN_LENGTH = 0x1A2B3C4D, -1
END_OF_OPTIONS, COMMENT, INTERFACE_NAME, APPLICATION, TIME_RESOLUTION = 0, 1, 2, 4, 9
NANOSECONDS = b"\x09"


@dataclass(frozen=True)
class Interface:
    """Where packets were seen: its name, its link type (LINKTYPE_ of pcap), and the most bytes of a packet (0: all)."""

    name: str
    link_type: int
    snaplen: int


@dataclass(frozen=True)
class Frame:
    """A packet: the number of its interface, when (ns since 1970), its bytes, how many it had, and a comment or ""."""

    interface: int
    t_ns: int
    content: bytes
    whole: int
    comment: str


def written(interfaces: Sequence[Interface], frames: Iterable[Frame]) -> bytes:
    """The file's bytes: the frames in their order."""
    header = struct.pack("<IHHq", BYTE_ORDER_MAGIC, 1, 0, UNKNOWN_LENGTH) + _options([(APPLICATION, b"scpslab")])
    blocks = [_block(SECTION_HEADER, header)]
    for interface in interfaces:
        description = struct.pack("<HHI", interface.link_type, 0, interface.snaplen)
        options = [(INTERFACE_NAME, interface.name.encode()), (TIME_RESOLUTION, NANOSECONDS)]
        blocks.append(_block(INTERFACE_DESCRIPTION, description + _options(options)))
    for frame in frames:
        sizes = (frame.interface, frame.t_ns >> 32, frame.t_ns & 0xFFFFFFFF, len(frame.content), frame.whole)
        packet = struct.pack("<IIIII", *sizes) + _padded(frame.content)
        blocks.append(
            _block(ENHANCED_PACKET, packet + (_options([(COMMENT, frame.comment.encode())]) if frame.comment else b""))
        )
    return b"".join(blocks)


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length


def _options(options: list[tuple[int, bytes]]) -> bytes:
    return b"".join(
        struct.pack("<HH", code, len(value)) + _padded(value) for code, value in [*options, (END_OF_OPTIONS, b"")]
    )


def _padded(value: bytes) -> bytes:
    """Blocks and options begin at multiples of four bytes."""
    return value + bytes(-len(value) % 4)


COLUMNS = (
    *("link", "direction", "packet", "offered_s", "waited_bytes", "due_s", "left_s", "arrived_s", "fate", "bit_errors"),
    *("wire_bytes", "from_ip", "from_port", "to_ip", "to_port", "protocol", "ip_id", "payload_bytes"),
    *("seq", "ack", "flags", "window", "owner"),
)
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


MS_NS = 10**6
Event = tuple[int, str, dict[str, Any]]  # ns since the epoch, name, data


def qlogs(record: Record, states: Sequence[States], epoch_realtime_ns: int) -> Iterator[tuple[str, str]]:
    """For each flow of TCP that carried data, a name and a file's text; times since the epoch.

    qlog 0.3 in its streaming form, JSON-SEQ (draft-ietf-quic-qlog-main-schema-07 and -quic-events-07), which tools such
    as qvis read: what the sender of the data sent, heard and knew, of TCP and SCPS-TP. qlog's events are QUIC's. A
    segment is a packet of type `1RTT`, with a number of its own for each sending and a stream frame with its place,
    counted from the initial sequence number (so data begin at 1, and a FIN takes a byte); an acknowledgement names the
    packets that it is the first to cover, as `scps send --qlog` writes them. What only the lab knows are events of the
    name space `scpslab`: `packet_lost` has the link, the direction and the cause, at the instant of the loss.
    """
    fates = Fates(record)
    flows = dict.fromkeys(flow for hop in fates.hops.values() for flow in hop.rows)
    for flow in flows:
        node = record.addresses.get(flow.from_ip)
        firsts = [one for one in fates.of_flow(flow).values() if one.hop.way.from_ == node]
        first = max(firsts, key=lambda one: len(one.rows), default=None)
        if node is None or first is None or not np.any(first.payload):
            continue
        packets = first.hop.packets
        owner = packets.flows[packets.flow[first.rows[0]]].owner
        ends = (end(flow.from_ip, flow.from_port), end(flow.to_ip, flow.to_port))
        own = next((one for one in states if (one.local, one.remote) == ends and one.gateway in ("", node)), None)
        # What is heard comes before what it makes the sender send in the same nanosecond.
        events = [*_heard(fates, flow, node, first), *_known(own), *_sent(first), *_lost(fates, flow, first)]
        title = f"{owner}: {ends[0]} to {ends[1]}"
        yield f"{owner}-{node}-{flow.from_port}", _text(title, epoch_realtime_ns, sorted(events, key=itemgetter(0)))


def _text(title: str, origin_ns: int, events: Iterable[Event]) -> str:
    """RFC 7464: a record separator before each record."""
    common = {"protocol_type": ["TCP"], "time_format": "relative", "reference_time": origin_ns / MS_NS}
    trace = {"vantage_point": {"type": "client", "name": "sender of the data"}, "common_fields": common}
    records: list[dict[str, Any]] = [{"qlog_version": "0.3", "qlog_format": "JSON-SEQ", "title": title, "trace": trace}]
    records += [{"time": t_ns / MS_NS, "name": name, "data": data} for t_ns, name, data in events]
    return "".join(f"\x1e{json.dumps(one, separators=(',', ':'))}\n" for one in records)


def _header(number: int) -> dict[str, Any]:
    return {"packet_type": "1RTT", "packet_number": number}


def _sent(first: OfFlow) -> Iterator[Event]:
    """A FIN takes a byte behind the data, a SYN the one before them."""
    columns = (first.offered_ns, first.left, first.right, first.payload)
    for number, (t_ns, left, right, payload) in enumerate(zip(*(one.tolist() for one in columns), strict=True)):
        stream = {"frame_type": "stream", "stream_id": 0, "offset": left + 1, "length": right - left}
        frames = [stream] if right > left else []
        yield (
            t_ns,
            "transport:packet_sent",
            {"header": _header(number), "raw": {"payload_length": payload}, "frames": frames},
        )


def _lost(fates: Fates, flow: Flow, first: OfFlow) -> Iterator[Event]:
    for (link, direction), later in fates.of_flow(flow).items():
        cause, origin = later.hop.cause[later.rows], first.matching(later)
        for row in np.flatnonzero((cause != "") & (origin != NOBODY)).tolist():
            place = int(later.rows[row])
            told = {"link": link, "direction": direction, "cause": str(cause[row])}
            errors = int(later.hop.packets.bit_errors[place])
            yield (
                int(later.hop.at_ns[place]),
                "scpslab:packet_lost",
                {"header": _header(int(origin[row])), **told, "bit_errors": errors},
            )


def _heard(fates: Fates, flow: Flow, node: str, first: OfFlow) -> Iterator[Event]:
    """What arrived at the sender, in its order; of data that the other end sends too, the acknowledgements."""
    back = replace(flow, from_ip=flow.to_ip, to_ip=flow.from_ip, from_port=flow.to_port, to_port=flow.from_port)
    lasts = [one for one in fates.of_flow(back).values() if one.hop.way.to == node]
    last = max(lasts, key=lambda one: len(one.rows), default=None)
    if last is None:
        return
    packets = last.hop.packets
    rows = last.rows[(last.hop.cause[last.rows] == "") & (packets.flags[last.rows] & ACK != 0)]
    rows = rows[np.argsort(packets.arrived_ns[rows], kind="stable")]
    base = int(first.hop.packets.sequence[first.rows[0]]) - int(first.left[0])
    acknowledged = unwrapped(packets.acknowledgement[rows], base % 2**32)
    sendings = list(zip(first.offered_ns.tolist(), first.left.tolist(), first.right.tolist(), strict=True))
    waiting: list[tuple[int, int]] = []
    latest: dict[int, int] = {}
    sent = 0
    for number, (t_ns, ack) in enumerate(zip(packets.arrived_ns[rows].tolist(), acknowledged.tolist(), strict=True)):
        while sent < len(sendings) and sendings[sent][0] <= t_ns:
            _, left, right = sendings[sent]
            if right > left:
                heappush(waiting, (left, sent))
                latest[left] = sent
            sent += 1
        covered = []
        while waiting and waiting[0][0] < ack:
            left, packet = heappop(waiting)
            if latest[left] == packet:
                covered.append(packet)
        frame = {"frame_type": "ack", "acked_ranges": _ranges(sorted(covered))}
        yield t_ns, "transport:packet_received", {"header": _header(number), "frames": [frame]}


def _ranges(numbers: Sequence[int]) -> list[list[int]]:
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ranges


def _known(own: States | None) -> Iterator[Event]:
    """What congestion control knew."""
    if own is None:
        return
    columns = (own.t_ns, own.cwnd_bytes, own.ssthresh_bytes, own.srtt_us)
    for t_ns, cwnd, ssthresh, srtt_us in zip(*(one.tolist() for one in columns), strict=True):
        known = (("congestion_window", cwnd, cwnd != NONE), ("ssthresh", ssthresh, ssthresh != NONE))
        data = {
            name: value for name, value, is_known in (*known, ("smoothed_rtt", srtt_us / 1000, srtt_us)) if is_known
        }
        if data:
            yield t_ns, "recovery:metrics_updated", data
