"""What arrived of a burst."""

from __future__ import annotations

from scpslab.analysis.metrics.base import Column, Family, Subject, Value, count
from scpslab.analysis.metrics.data_flows import DataFlow

from scpslab.kinds.workloads.burst import plan as planned

COLUMNS = (Column("burst_packets", None, "Datagrams that arrived."),)


def measure(subject: Subject[planned.Burst]) -> dict[str, Value]:
    """The sink's count."""
    sink = next((line for line in subject.cell.records(subject.workload.name) if line.get("event") == "sink"), {})
    return {"burst_packets": count(sink, "received_packets")}


FAMILY = Family(planned.Burst, COLUMNS, measure)
KIND = DataFlow()
