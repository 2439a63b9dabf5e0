"""A file by programs of anybody's: its time as the lab saw it, and its packets by their owner, whatever they speak."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from scpslab.analysis.metrics.base import Family, Subject, Values, columns, count, elapsed, number
from scpslab.analysis.metrics.data_flows import DATA_FLOWS, DataFlow
from scpslab.analysis.run import bottleneck
from scpslab.measure.connections import Bools
from scpslab.measure.packets import DELIVERED, Packets
from scpslab.measure.record import dropped
from scpslab.plan.flows import ways
from scpslab.plan.links import LOSS_CAUSES, QUEUE, Direction

from scpslab.kinds.workloads.program.plan import Program

COLUMNS = columns(
    "bytes transfer_s:9 user_s:9 goodput_bps:3 utilization:9 payload_match wire_bytes "
    + " ".join(f"lost_{cause}_packets" for cause in LOSS_CAUSES)
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
    span = _span(subject, arrived_s)
    if matches and span:
        (start_s, end_s), first_bytes = span
        values["transfer_s"] = end_s - start_s
        values |= subject.rates(subject.workload.bytes_, values["transfer_s"], start_s, first_bytes)
    return values | _on_wire(subject)


def _of_it(packets: Packets, name: str) -> Bools:
    """Which packets are a workload's."""
    is_its = np.array([flow.owner == name for flow in packets.flows], bool)
    return is_its[packets.flow] if len(packets) else np.zeros(0, bool)


def _hops(subject: Subject[Program]) -> Iterator[tuple[tuple[str, str], Packets, Direction]]:
    """The places on the way of the data, each with its packets and its plan."""
    record = subject.cell.record
    for hop in ways(subject.cell.plan, subject.workload)[0]:
        if record is not None and hop.place in record.by_place:
            yield hop.place, record.by_place[hop.place], record.planned[hop.place]


def _span(subject: Subject[Program], until_s: float | None) -> tuple[tuple[float, float], int] | None:
    """When the first and the last of its packets with payload came to the receiver, the file's end included, and the
    payload of the first; None without two.
    """
    last = list(_hops(subject))[-1:]
    if not last or until_s is None:
        return None
    packets = last[0][1]
    is_data = _of_it(packets, subject.workload.name) & packets.had(DELIVERED) & (packets.payload > 0)
    is_data &= packets.arrived_ns / 1e9 <= until_s
    t_s, payload = packets.arrived_ns[is_data] / 1e9, packets.payload[is_data]
    return ((float(t_s.min()), float(t_s.max())), int(payload[t_s.argmin()])) if len(t_s) > 1 else None


def _on_wire(subject: Subject[Program]) -> Values:
    """What its packets were on the way of the data: bytes that the slowest hop was offered, losses of all hops."""
    hop = bottleneck(subject.cell.plan, subject.workload)
    values: Values = {}
    lost = Counter[str]()
    for place, packets, way in _hops(subject):
        is_its = _of_it(packets, subject.workload.name)
        if hop and hop.place == place:
            values["wire_bytes"] = int(packets.wire_bytes[is_its].sum())
        for cause in LOSS_CAUSES:
            is_lost = dropped(packets, way) if cause == QUEUE else packets.had(cause)
            lost[f"lost_{cause}_packets"] += int((is_lost & is_its).sum())
    return {**values, **lost}


DATA_FLOWS.register("program", DataFlow(Family(COLUMNS, measure, empty=EMPTY)))
