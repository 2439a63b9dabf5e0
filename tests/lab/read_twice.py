"""Columns of a cell against the second reader of its packets: those of whole captures, and those of the record."""

from collections.abc import Iterator
from operator import itemgetter

import dpkt
import pytest

from scpslab.analysis.collect import columns_by_workload, measure
from scpslab.measure.packets import DELIVERED, FATES, NEVER, TCP_HEADERS, read
from scpslab.measure.record import dropped
from scpslab.runs import CellFiles
from tests.lab import second_reader

# Captures stamp a packet so much later than the links' programs note it.
LATE_S = 2e-5
FILES = ("ftp", "fp")
# Columns that a record cannot give, which has no options.
BY_OPTIONS = ("max_advertised_window_bytes",)


def recorded_seen(cell) -> dict[str, list[second_reader.Packet]]:
    """What each host saw by the record: what arrived there unharmed, and what it sent, as it left its sockets."""
    found = {}
    for packets in read(CellFiles(cell.folder).packets):
        way = cell.record.planned[packets.link, packets.direction]
        for at, flow_number in enumerate(packets.flow.tolist()):
            flow = packets.flows[flow_number]
            numbers = (packets.sequence, packets.acknowledgement, packets.window, packets.flags)
            seq, ack, window, flags = (int(column[at]) for column in numbers)
            tcp = dpkt.tcp.TCP(seq=seq, ack=ack, win=window, flags=flags) if flow.protocol in TCP_HEADERS else None
            ends = ((flow.from_ip, flow.from_port), (flow.to_ip, flow.to_port))
            size = int(packets.wire_bytes[at]) - way.overhead_bytes
            seen = (flow.protocol, size, int(packets.payload[at]), tcp)
            ways = [(way.from_, packets.offered_ns[at], True)]
            ways += [(way.to, packets.arrived_ns[at], False)] if packets.fate[at] == FATES.index(DELIVERED) else []
            for node, t_ns, is_sent in ways:
                one = second_reader.Packet(int(t_ns), *ends, *seen)
                found.setdefault(node, []).append((one.t_ns, is_sent, one))
    # An answer in the nanosecond of its reason stands behind it.
    return {node: [one for *_, one in sorted(packets, key=itemgetter(0, 1))] for node, packets in found.items()}


def owned(cell) -> dict[str, set[frozenset]]:
    """The connections in which each owner sends, by the record."""
    found = {}
    for packets in read(CellFiles(cell.folder).packets):
        for flow in packets.flows:
            if flow.protocol in TCP_HEADERS:
                ends = ((flow.from_ip, flow.from_port), (flow.to_ip, flow.to_port))
                found.setdefault(flow.owner, set()).add(frozenset(ends))
    return found


def seen_alike(cell, node: str) -> tuple[bool, bool]:
    """Whether all that came to a host was whole and came once, so that captures and the record see the same of it; and
    whether its own queue and policer dropped nothing.
    """
    is_whole = is_kept = True
    for packets in read(CellFiles(cell.folder).packets):
        way = cell.record.planned[packets.link, packets.direction]
        came = packets.arrived_ns != NEVER
        if way.to == node:
            is_whole &= not len(packets.duplicates_ns) and not (came & ~packets.had(DELIVERED)).any()
        if way.from_ == node:
            is_kept &= not (dropped(packets, way) | packets.had("policed")).any()
    return bool(is_whole), bool(is_kept)


def alike(said, found, **within) -> bool:
    """Whether two values are the same, or both not there."""
    return said is found if None in (said, found) else said == pytest.approx(found, **within)


def columns_hold(cell, captured) -> Iterator[str]:
    """Each column that whole captures give is what a second reader finds in them: where there is no record to a digit;
    by the record what it finds in that, and behind a host's queue what it finds in captures, but for what their clocks
    are late. Says which columns.
    """
    names = columns_by_workload(cell.plan)
    recorded, without = measure(cell), measure(captured)
    workloads = {one.name: one for one in cell.plan.cell.workloads}
    by_record = second_reader.columns_of(cell, recorded_seen(cell), owned(cell))
    for name, metric in sorted((name, metric) for name, metric in names if metric in by_record.get(name, ())):
        said, found = recorded.get(names[name, metric]), by_record[name][metric]
        is_whole = recorded.get(names.get((name, "bytes"), "")) == by_record[name].get("arrived_bytes")
        if (
            metric.startswith(("wire_", "congestion"))
            or metric in BY_OPTIONS
            or ("transfer_" in metric and not is_whole)
        ):
            continue
        assert alike(said, found, rel=1e-6, abs=1e-8), (name, metric, said, found)
        yield f"column {workloads[name].kind} {metric} of the record"
    for name, columns in second_reader.columns_of(
        captured, second_reader.whole_captures(captured), owned(cell)
    ).items():
        mine = workloads[name]
        hosts = {mine.from_, mine.to}
        # Two files between the same hosts are not told apart in captures.
        files = [one for one in workloads.values() if one.kind in FILES and {one.from_, one.to} <= hosts]
        is_sure = mine.kind not in FILES or len(files) == 1
        seen = {node: seen_alike(cell, node) for node in hosts}
        is_whole = without.get(names.get((name, "bytes"), "")) == columns.get("arrived_bytes")
        for metric in sorted({metric for own, metric in names if own == name} & set(columns)):
            said, found = without.get(names[name, metric]), columns[metric]
            if "transfer_" in metric and not is_whole:
                # Without all of its bytes, its time is the receiving program's.
                continue
            if metric.startswith("congestion") and (not seen[mine.from_][1] or found == 0):
                # What a generator offers its host's queue drops; one that never began says nothing.
                continue
            is_same = alike(said, found, rel=1e-6, abs=1e-8)
            assert is_same or (said is None and not is_sure), (name, metric, said, found)
            yield f"column {mine.kind} {metric} {'empty' if said is None else 'read twice'}"
            if metric.startswith("wire_") and seen[mine.from_][0]:
                said = recorded.get(names[name, metric])
                within = {"abs": LATE_S} if metric.endswith("_s") else {"rel": 1e-6}
                assert alike(said, found, **within), (name, metric, said, found)
                yield f"column {mine.kind} {metric} of the record"
