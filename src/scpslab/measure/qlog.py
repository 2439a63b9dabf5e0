"""Connections of TCP and SCPS-TP as qlog 0.3 in its streaming form, JSON-SEQ (draft-ietf-quic-qlog-main-schema-07 and
-quic-events-07), which tools such as qvis read: what the sender of the data sent, heard and knew, from the record.

qlog's events are QUIC's. A segment is a packet of type `1RTT`, with a number of its own for each sending and a stream
frame with its place, counted from the initial sequence number (so data begin at 1, and a FIN takes a byte); an
acknowledgement names the packets that it is the first to cover, as `scps send --qlog` writes them. What only the lab
knows are events of the name space `scpslab`: `packet_lost` has the link, the direction and the cause, at the instant
of the loss.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from operator import itemgetter
from typing import Any

import numpy as np

from scpslab.measure.connections import ACK, unwrapped
from scpslab.measure.losses import NOBODY, Fates, OfFlow
from scpslab.measure.packets import Flow
from scpslab.measure.record import Record
from scpslab.measure.states import States

MS_NS = 10**6
Event = tuple[int, str, dict[str, Any]]  # ns since the epoch, name, data


def qlogs(record: Record, states: Sequence[States], epoch_realtime_ns: int) -> Iterator[tuple[str, str]]:
    """For each flow of TCP that carried data, a name and a file's text; times since the epoch."""
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
        ends = (f"{flow.from_ip}:{flow.from_port}", f"{flow.to_ip}:{flow.to_port}")
        own = next((one for one in states if (one.local, one.remote) == ends), None)
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
    """The states of the kernel's TCP; programs of SCPS have none."""
    if own is None:
        return
    columns = (own.t_ns, own.cwnd_bytes, own.ssthresh_bytes, own.srtt_us)
    for t_ns, cwnd, ssthresh, srtt_us in zip(*(one.tolist() for one in columns), strict=True):
        data: dict[str, Any] = {"congestion_window": cwnd}
        if ssthresh >= 0:
            data["ssthresh"] = ssthresh
        if srtt_us:
            data["smoothed_rtt"] = srtt_us / 1000
        yield t_ns, "recovery:metrics_updated", data
