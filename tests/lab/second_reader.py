"""A second reader of whole captures: the columns that docs/columns.md says of packets, found by dpkt packet by packet.

It shares no line with scpslab.measure or scpslab.analysis, and is as plain as the page's words. Times are nanoseconds.
"""

from __future__ import annotations

import ipaddress
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import StatisticsError, correlation, linear_regression, median
from typing import Any, NamedTuple

import dpkt

from scpslab.analysis.run import bottleneck
from tests.lab.ran import Cell

TCP, UDP, SCPS_TP = 6, 17, 106
FIN, SYN, RST, ACK = 1, 2, 4, 16
SECOND = 10**9
HEADER_BYTES = 56
IPV6_BYTES, FRAGMENT_BYTES = 40, 8
Columns = dict[str, float | None]
Ends = frozenset[tuple[str, int]]


@dataclass(frozen=True)
class Packet:
    """One packet of IP that is whole, or the first part of one; `tcp` of SCPS-TP too, which has the same header."""

    t_ns: int
    source: tuple[str, int]
    target: tuple[str, int]
    protocol: int
    ip_bytes: int
    payload: int
    tcp: dpkt.tcp.TCP | None = None


def packets_of(file: Path, epoch_ns: int) -> list[Packet]:
    """The packets of a capture, from the epoch on."""
    with file.open("rb") as opened:
        read = ((int(t_s * SECOND) - epoch_ns, frame) for t_s, frame in dpkt.pcap.Reader(opened))
        return [packet for t_ns, frame in read if (packet := _packet(t_ns, dpkt.ethernet.Ethernet(frame).data))]


class Ip(NamedTuple):
    """What a packet of IPv4 or IPv6 is; `data`: what stands behind its headers, None in a later part of one."""

    source: str
    target: str
    protocol: int
    bytes_: int
    length: int
    data: object


def ip_of(found: object) -> Ip | None:
    """A packet of IP among what dpkt finds in frames."""
    if isinstance(found, dpkt.ip.IP):
        data = None if found.offset else found.data
        return Ip(*_addresses(found), found.p, found.len, found.len - 4 * found.hl, data)
    if not isinstance(found, dpkt.ip6.IP6):
        return None
    fragment = found.extension_hdrs.get(dpkt.ip.IP_PROTO_FRAGMENT)
    protocol, size = (fragment.nxt, found.plen - FRAGMENT_BYTES) if fragment else (found.nxt, found.plen)
    data = None if fragment and fragment.frag_off else found.data
    return Ip(*_addresses(found), protocol, IPV6_BYTES + found.plen, size, data)


def _addresses(found: dpkt.ip.IP | dpkt.ip6.IP6) -> tuple[str, ...]:
    return tuple(str(ipaddress.ip_address(address)) for address in (found.src, found.dst))


def _packet(t_ns: int, found: object) -> Packet | None:
    ip = ip_of(found)
    if ip is None or ip.data is None:
        return None
    if ip.protocol in (TCP, SCPS_TP):
        try:
            tcp = ip.data if isinstance(ip.data, dpkt.tcp.TCP) else dpkt.tcp.TCP(ip.data)
        except dpkt.UnpackError:
            # Its bits were changed on the way.
            return None
        ends = (ip.source, tcp.sport), (ip.target, tcp.dport)
        return Packet(t_ns, *ends, ip.protocol, ip.bytes_, ip.length - 4 * tcp.off, tcp=tcp)
    if ip.protocol == UDP:
        udp = ip.data if isinstance(ip.data, dpkt.udp.UDP) else dpkt.udp.UDP(ip.data)
        return Packet(t_ns, (ip.source, udp.sport), (ip.target, udp.dport), ip.protocol, ip.bytes_, ip.length - 8)
    return Packet(t_ns, (ip.source, 0), (ip.target, 0), ip.protocol, ip.bytes_, ip.length)


def connections(packets: Iterable[Packet]) -> dict[Ends, list[Packet]]:
    """The packets of each connection, by its two ends."""
    found: dict[Ends, list[Packet]] = {}
    for packet in packets:
        if packet.tcp is not None:
            found.setdefault(frozenset((packet.source, packet.target)), []).append(packet)
    return found


@dataclass
class Transfer:
    """The data of one side of a connection, and what the other side acknowledges of it.

    `data`: time, first byte, byte after the last, whether bytes below the highest one so far are in it. `acks`: time,
    bytes acknowledged, window, flags, IP bytes. `flight`: bytes under way after each of both.
    """

    opened_ns: int | None = None
    data: list[tuple[int, int, int, bool]] = field(default_factory=list)
    acks: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    bare: list[tuple[int, int]] = field(default_factory=list)
    flight: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, packets: Sequence[Packet], sender: tuple[str, int]) -> Transfer:
        """What a sender's data are in a connection's packets."""
        found = cls()
        opened = max((at for at, p in enumerate(packets) if p.tcp.flags & SYN), default=-1)
        # What comes behind a reset is another connection's.
        reset = next((at for at, p in enumerate(packets) if at > opened and p.tcp.flags & RST), len(packets))
        packets = packets[:reset]
        own_syn = next((p for p in packets if p.source == sender and p.tcp.flags & SYN), None)
        other_syn = next((p for p in packets if p.source != sender and p.tcp.flags & SYN), None)
        if own_syn is None:
            return found
        first = own_syn.tcp.seq + 1
        has_fin = any(p.tcp.flags & FIN for p in packets if p.source == sender)
        total = max(
            (_near(p.tcp.seq - first) + p.payload for p in packets if p.source == sender and p.payload), default=0
        )
        shifts = [_shift(syn) for syn in (own_syn, other_syn)]
        shift = 0 if None in shifts else shifts[1]
        found.opened_ns = own_syn.t_ns
        highest = acked = 0
        for p in packets:
            if p.tcp.flags & SYN:
                continue
            if p.source == sender:
                if not p.payload:
                    continue
                low = _near(p.tcp.seq - first)
                found.data.append((p.t_ns, low, low + p.payload, bool(found.data) and low < highest))
                highest = max(highest, low + p.payload)
            elif p.tcp.flags & ACK:
                ack = _near(p.tcp.ack - first)
                ack = min(ack, total) if has_fin else ack
                acked = max(acked, ack)
                found.acks.append((p.t_ns, ack, p.tcp.win << shift, p.tcp.flags, p.ip_bytes))
                if not p.payload:
                    found.bare.append((p.tcp.flags, p.ip_bytes))
            else:
                continue
            found.flight.append((p.t_ns, max(highest - acked, 0)))
        return found

    @property
    def total(self) -> int:
        """The byte after the last one."""
        return max((end for _, _, end, _ in self.data), default=0)

    @property
    def again(self) -> list[tuple[int, int, int, bool]]:
        """Data packets with bytes that were sent before."""
        return [one for one in self.data if one[3]]

    @property
    def ended_ns(self) -> int | None:
        """The first acknowledgement of the last byte."""
        return next((t_ns for t_ns, ack, *_ in self.acks if ack >= self.total), None) if self.data else None

    @cached_property
    def round_trips(self) -> list[tuple[int, int]]:
        """Time and length: from the last packet that an acknowledgement covers, where all that it covers was sent once,
        and without a hole.
        """
        fresh = [one for one in self.data if not one[3]]
        ends = [end for _, _, end, _ in fresh]
        spoiled = [place > 0 and fresh[place][1] > ends[place - 1] for place in range(len(fresh))]
        for _, low, high, _ in self.again:
            place = bisect_right(ends, low)
            while place < len(fresh) and fresh[place][1] < high:
                spoiled[place] = True
                place += 1
        found, acked, covered = [], 0, 0
        for t_ns, ack, *_ in self.acks:
            if ack > acked:
                until = bisect_right(ends, ack)
                if until > covered and not any(spoiled[covered:until]) and t_ns >= fresh[until - 1][0]:
                    found.append((t_ns, t_ns - fresh[until - 1][0]))
                acked, covered = ack, until
        return found

    @property
    def least_ns(self) -> int | None:
        """The smallest round trip."""
        return min((rtt for _, rtt in self.round_trips), default=None)

    def acknowledged(self, t_ns: float) -> float:
        """Bytes acknowledged at a time, on a straight line from each acknowledgement to the next."""
        highest, points = 0, []
        for at, ack, *_ in self.acks:
            highest = max(highest, ack)
            points.append((at, highest))
        after = bisect_right(points, t_ns, key=lambda point: point[0])
        if after == 0:
            return 0.0
        if after == len(points):
            return points[-1][1]
        (from_ns, low), (to_ns, high) = points[after - 1], points[after]
        return low + (high - low) * (t_ns - from_ns) / (to_ns - from_ns)


def _near(difference: int) -> int:
    return (difference + 2**31) % 2**32 - 2**31


def _shift(syn: Packet | None) -> int | None:
    options = dict(dpkt.tcp.parse_opts(syn.tcp.opts)) if syn else {}
    return min(options[dpkt.tcp.TCP_OPT_WSCALE][0], 14) if dpkt.tcp.TCP_OPT_WSCALE in options else None


def at_receiver(found: Transfer) -> Columns:
    """What a transfer was where its data go to."""
    columns: Columns = {"arrived_bytes": found.total}
    if found.data and found.ended_ns is not None:
        columns["transfer_s"] = _s(found.data[0][0], found.ended_ns)
        columns["transfer_from_syn_s"] = _s(found.opened_ns, found.ended_ns)
    first = next((t_ns for t_ns, ack, *_ in found.acks if ack > 0), None)
    columns["first_ack_delay_s"] = _s(found.data[0][0], first) if found.data and first is not None else None
    return columns


def at_sender(found: Transfer, rate_bps: float | None) -> Columns:
    """What a transfer was where its data come from; `rate_bps` of the hop whose queue is estimated."""
    rtts = [rtt for _, rtt in found.round_trips]
    columns: Columns = {
        "capture_retransmissions": len(found.again),
        "max_flight_bytes": max((flight for _, flight in found.flight), default=0),
        "max_advertised_window_bytes": max((window for _, _, window, _, _ in found.acks), default=None),
        "rtt_min_s": min(rtts, default=None),
        "rtt_max_s": max(rtts, default=None),
    }
    for name in ("rtt_min_s", "rtt_max_s"):
        columns[name] = None if columns[name] is None else columns[name] / SECOND
        columns[f"wire_{name}"] = columns[name]
    if found.data and found.acks:
        columns |= _flights(found) | _rates(found) | _queue(found, rate_bps) | _after_loss(found)
        columns["ack_bytes"] = ack_bytes(found, SYN | FIN)
    return columns


def ack_bytes(found: Transfer, without: int) -> int | None:
    """The most common length of what only acknowledges; the least of several."""
    lengths = Counter(size for flags, size in found.bare if not flags & without)
    return min(lengths, key=lambda size: (-lengths[size], size)) if lengths else None


def _flights(found: Transfer) -> Columns:
    if found.least_ns is None:
        return {}
    sizes, before = [0], None
    for t_ns, _, _, is_again in found.data:
        if is_again:
            continue
        if before is not None and 2 * (t_ns - before) > found.least_ns:
            sizes.append(0)
        sizes[-1] += 1
        before = t_ns
    return {f"flight_{number}_segments": size for number, size in enumerate(sizes[:4], start=1)}


def _rates(found: Transfer) -> Columns:
    ended_ns = found.ended_ns
    if ended_ns is None:
        return {}
    began_ns = found.data[0][0]
    half_ns = (began_ns + ended_ns) / 2
    left = found.total - found.acknowledged(half_ns)
    final_bps = left * 8 * SECOND / (ended_ns - half_ns) if ended_ns > half_ns else 0.0
    bins: Counter[int] = Counter()
    for t_ns, low, high, _ in found.data:
        bins[(t_ns - began_ns) * 2 // SECOND] += high - low
    columns: Columns = {"final_rate_bps": final_bps, "peak_rate_bps": max(bins.values()) * 16}
    if found.least_ns and final_bps > 0:
        highest = 0
        for t_ns, ack, *_ in found.acks:
            highest = max(highest, ack)
            rate_bps = (highest - found.acknowledged(t_ns - found.least_ns)) * 8 * SECOND / found.least_ns
            if rate_bps >= 0.95 * final_bps:
                columns["linear_from_s"] = _s(found.opened_ns, t_ns)
                break
    return columns


def _queue(found: Transfer, rate_bps: float | None) -> Columns:
    trips = found.round_trips
    if not rate_bps or not trips:
        return {}
    from_ns = trips[-1][0] - (trips[-1][0] - trips[0][0]) / 10
    waits = [(rtt - found.least_ns) * rate_bps / 8 / SECOND for t_ns, rtt in trips if t_ns >= from_ns]
    segment = max(high - low for _, low, high, _ in found.data)
    return {"queue_end_packets": sum(waits) / len(waits) / (segment + HEADER_BYTES)}


def _after_loss(found: Transfer) -> Columns:
    if not found.again:
        return {}
    place = next(place for place, one in enumerate(found.data) if one[3])
    since_ns, first_byte = found.data[place][:2]
    sent = sorted(t_ns for t_ns, *_ in found.data if t_ns >= since_ns)
    columns: Columns = {
        "burst_segments": max(bisect_right(sent, t_ns + SECOND // 10) - at for at, t_ns in enumerate(sent)),
        "longest_silence_s": max((_s(*pair) for pair in pairwise(sent)), default=None),
    }
    earlier = [t_ns for t_ns, low, high, _ in found.data[:place] if low <= first_byte < high]
    columns["repair_s"] = _s(earlier[-1], since_ns) if earlier else None
    last_ns = found.again[-1][0]
    before = [flight for t_ns, flight in found.flight if t_ns < since_ns]
    after = [flight for t_ns, flight in found.flight if SECOND <= t_ns - last_ns <= 2 * SECOND]
    if before and after:
        columns["flight_share_after_recovery"] = median(after) / max(before)
    until_ns = next((t_ns for t_ns, *_ in found.again if t_ns > since_ns + 2 * SECOND), found.data[-1][0])
    inside = [(t_ns, flight) for t_ns, flight in found.flight if since_ns + 2 * SECOND <= t_ns <= until_ns]
    if len(inside) >= 3 and until_ns - since_ns >= 4 * SECOND and inside[0][0] < inside[-1][0]:
        segment = max(high - low for _, low, high, _ in found.data)
        slope = linear_regression([t_ns / SECOND for t_ns, _ in inside], [flight / segment for _, flight in inside])
        columns["window_growth_segments_per_s"] = slope.slope
    return columns


def against(found: Transfer, load: Iterable[Packet], from_s: float) -> float | None:
    """The correlation of a transfer's rate with a load's, in whole seconds from a time after its opening on."""
    from_ns = found.opened_ns + round(from_s * SECOND)
    bins = max(1, math.ceil((max(t_ns for t_ns, *_ in found.data) - from_ns) / SECOND - 1e-9))
    rates = [[0] * bins, [0] * bins]
    sent = [(0, t_ns, high - low) for t_ns, low, high, _ in found.data]
    for which, t_ns, size in (*sent, *((1, p.t_ns, p.ip_bytes) for p in load)):
        if 0 <= t_ns - from_ns < bins * SECOND:
            rates[which][(t_ns - from_ns) // SECOND] += size
    try:
        return correlation(*rates) if bins >= 5 else None
    except StatisticsError:
        return None


def of_a_file(at_source: Sequence[Packet], at_target: Sequence[Packet]) -> Columns:
    """What a file protocol's data connection was at both hosts; without packets where no capture is."""
    columns: Columns = {}
    if at_target:
        found = Transfer.of(at_target, sender_of(at_target))
        began = [t_ns for t_ns in (found.opened_ns, *(one[0] for one in found.data[:1])) if t_ns is not None]
        has_time = found.data and found.ended_ns is not None
        columns |= {
            "arrived_bytes": found.total,
            "capture_transfer_s": _s(min(began), found.ended_ns) if has_time else None,
            "ack_bytes": ack_bytes(found, SYN | FIN | RST),
        }
    if at_source:
        found = Transfer.of(at_source, sender_of(at_source))
        columns["data_retransmissions"] = len(found.again)
        columns["rtt_min_s"] = columns["wire_rtt_min_s"] = _s(0, found.least_ns)
    if at_source and at_target:
        columns["handshake_rtt_s"] = _handshake_s(
            at_source if at_source[0].source == sender_of(at_source) else at_target
        )
    return columns


def _handshake_s(at_opener: Sequence[Packet]) -> float | None:
    """From the only request to open to its answer."""
    opener = at_opener[0].source
    asked, answered = (
        [p.t_ns for p in at_opener if p.tcp.flags & SYN and (p.source == opener) == is_own] for is_own in (True, False)
    )
    return _s(asked[0], answered[0]) if len(asked) == 1 and answered else None


def _s(from_ns: int | None, to_ns: int | None) -> float | None:
    return None if from_ns is None or to_ns is None else (to_ns - from_ns) / SECOND


def whole_captures(cell: Cell) -> dict[str, list[Packet]]:
    """The packets of each host where a capture has all of them."""
    epoch_ns = cell.epoch_realtime_ns
    probes = [probe for probe in cell.plan.cell.probes if probe.captures_all]
    return {probe.captured_node: packets_of(cell.capture_file(probe.name), epoch_ns) for probe in probes}


def columns_of(
    cell: Cell, seen: Mapping[str, list[Packet]], owned: Mapping[str, Collection[Ends]]
) -> dict[str, Columns]:
    """Each workload's columns from the packets that hosts saw; `owned`: the connections of each owner, by the record."""
    found: dict[str, Columns] = {}
    for workload in cell.plan.cell.workloads:
        mine = [connections(seen.get(node, ())) for node in (workload.from_, workload.to)]
        if workload.kind == "bulk":
            server = (workload.to_ip, workload.port)
            at_both = [_largest({ends: packets for ends, packets in one.items() if server in ends}) for one in mine]
            found[workload.name] = _of_bulk(cell, workload, at_both, seen)
        elif workload.kind in ("ftp", "fp"):
            data = [ends for ends in owned.get(workload.name, ()) if workload.port not in dict(ends).values()]
            at_both = [_largest({ends: one[ends] for ends in data if ends in one}) for one in mine]
            found[workload.name] = of_a_file(*at_both)
            asked = [p for p in seen.get(workload.from_, ()) if p.tcp and p.target[1] == workload.port]
            if workload.kind == "fp" and asked:
                client, server = (end[0] for end in (asked[0].source, asked[0].target))
                source = client if workload.opener == workload.from_ else server
                ways: Counter[bool] = Counter()
                for ends in owned.get(workload.name, ()):
                    for packet in mine[0].get(ends, ()):
                        ways[packet.source[0] == source] += packet.ip_bytes
                found[workload.name] |= {"wire_data_bytes": ways[True], "wire_ack_bytes": ways[False]}
        elif workload.kind == "background" and workload.from_ in seen:
            sent = [p for p in seen[workload.from_] if _is_load(p, workload)]
            sizes = {"packets": len(sent), "bytes": sum(packet.ip_bytes for packet in sent)}
            found[workload.name] = {f"congestion_offered_{what}": size for what, size in sizes.items()}
    return found


def _of_bulk(
    cell: Cell, workload: Any, at_both: Sequence[Sequence[Packet]], seen: Mapping[str, list[Packet]]
) -> Columns:
    at_source, at_target = (Transfer.of(one, sender_of(one)) if one else None for one in at_both)
    columns: Columns = at_receiver(at_target) if at_target else {}
    if at_source:
        hop = bottleneck(cell.plan, workload)
        columns |= at_sender(at_source, hop.direction.rate_bps if hop else None)
        loads = [one for one in cell.plan.cell.workloads if one.kind == "background"]
        from_s = columns.get("linear_from_s")
        if loads and from_s is not None and all(one.from_ in seen for one in loads):
            sent = [packet for one in loads for packet in seen[one.from_] if _is_load(packet, one)]
            columns["rate_congestion_r"] = against(at_source, sent, from_s)
    return columns


def _is_load(packet: Packet, load: Any) -> bool:
    return packet.protocol == UDP and packet.target == (load.to_ip, load.port)


def _largest(among: Mapping[Ends, list[Packet]]) -> list[Packet]:
    """The connection with the most payload."""
    with_data = [packets for packets in among.values() if any(packet.payload for packet in packets)]
    return max(with_data, key=lambda packets: sum(packet.payload for packet in packets), default=[])


def sender_of(packets: Sequence[Packet]) -> tuple[str, int]:
    """The end of a connection that sends most of its payload."""
    sent: Counter[tuple[str, int]] = Counter()
    for packet in packets:
        sent[packet.source] += packet.payload
    return max(sent, key=lambda end: sent[end])
