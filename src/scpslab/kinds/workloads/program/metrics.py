"""A file by programs of anybody's: its time as the lab saw it, and its packets by their owner, whatever they speak."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from scpslab.analysis.metrics.base import Family, Subject, Values, columns, count, elapsed, number
from scpslab.analysis.metrics.data_flows import DATA_FLOWS, DataFlow
from scpslab.analysis.viewpoints import bottleneck
from scpslab.measure.connections import Bools
from scpslab.measure.packets import DELIVERED, Packets
from scpslab.measure.record import dropped
from scpslab.plan.flows import ways
from scpslab.plan.links import LOSS_CAUSES, QUEUE

from scpslab.kinds.workloads.program.plan import Program

COLUMNS = columns(
    {
        "bytes": None,
        "transfer_s": 9,
        "user_s": 9,
        "goodput_bps": 3,
        "utilization": 9,
        "payload_match": None,
        "wire_bytes": None,
        **{f"lost_{cause}_packets": None for cause in LOSS_CAUSES},
    }
)


NO_RECORD = "no record of packets has its way"
EMPTY = {
    "transfer_s": f"the file did not arrive as it was sent, fewer than two packets came, or {NO_RECORD}",
    **dict.fromkeys(
        ("user_s", "goodput_bps", "utilization"), "the file did not arrive as it was sent, or its time is not known"
    ),
    "wire_bytes": f"no hop has a rate, or {NO_RECORD}",
    **{f"lost_{cause}_packets": NO_RECORD for cause in LOSS_CAUSES},
}


def measure(subject: Subject[Program]) -> Values:
    """Values by column name from the lab's notes and the record of packets."""
    client, file = subject.line("client"), subject.line("file")
    matches = file.get("sha256") == file.get("sent_sha256") if file else None
    arrived_s = number(file, "t_s")
    values: Values = {
        "bytes": count(file, "bytes"),
        "user_s": elapsed(number(client, "start_t_s"), arrived_s) if matches else None,
        "payload_match": matches,
    }
    span_s = _span_s(subject, arrived_s)
    if matches and span_s:
        values["transfer_s"] = span_s[1] - span_s[0]
        values |= subject.rates(subject.workload.bytes_, values["transfer_s"], span_s[0])
    return values | _on_wire(subject)


def _of_it(packets: Packets, name: str) -> Bools:
    """Which packets are a workload's."""
    is_its = np.array([flow.owner == name for flow in packets.flows], bool)
    return is_its[packets.flow] if len(packets) else np.zeros(0, bool)


def _hops(subject: Subject[Program]) -> Iterator[tuple[tuple[str, str], Packets]]:
    """The places on the way of the data, each with its packets."""
    record = subject.cell.record
    for hop in ways(subject.cell.plan, subject.workload)[0]:
        if record is not None and hop.place in record.by_place:
            yield hop.place, record.by_place[hop.place]


def _span_s(subject: Subject[Program], until_s: float | None) -> tuple[float, float] | None:
    """When the first and the last of its packets with payload came to the receiver, the file's end included; None
    without two.
    """
    last = list(_hops(subject))[-1:]
    if not last or until_s is None:
        return None
    packets = last[0][1]
    is_data = _of_it(packets, subject.workload.name) & packets.had(DELIVERED) & (packets.payload > 0)
    t_s = packets.arrived_ns[is_data] / 1e9
    t_s = t_s[t_s <= until_s]
    return (float(t_s.min()), float(t_s.max())) if len(t_s) > 1 else None


def _on_wire(subject: Subject[Program]) -> Values:
    """What its packets were on the way of the data: bytes that the slowest hop was offered, losses of all hops."""
    hop = bottleneck(subject.cell.plan, subject.workload)
    values: Values = {}
    for place, packets in _hops(subject):
        is_its = _of_it(packets, subject.workload.name)
        if hop and hop.place == place:
            values["wire_bytes"] = int(packets.wire_bytes[is_its].sum())
        assert subject.cell.record is not None  # it has hops
        way = subject.cell.record.planned[place]
        for cause in LOSS_CAUSES:
            lost = dropped(packets, way) if cause == QUEUE else packets.had(cause)
            name = f"lost_{cause}_packets"
            before = values.get(name, 0)
            assert isinstance(before, int)
            values[name] = before + int((lost & is_its).sum())
    return values


DATA_FLOWS.register("program", DataFlow(Family(COLUMNS, measure, empty=EMPTY)))
