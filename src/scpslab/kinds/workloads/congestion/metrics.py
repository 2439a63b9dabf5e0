"""What the FY97 congestion generator offered."""

from __future__ import annotations

from scpslab.analysis.metrics.base import Column, Family, Subject, Value, count
from scpslab.analysis.metrics.data_flows import Load

from scpslab.kinds.workloads.congestion.plan import Congestion

COLUMNS = (
    Column("congestion_offered_packets", None, "Packets the congestion generator sent."),
    Column("congestion_offered_bytes", None, "Their IP bytes."),
)


def measure(subject: Subject[Congestion]) -> dict[str, Value]:
    """Values by column name from the generator's summary."""
    lines = subject.cell.records(subject.workload.name)
    summary = next((line for line in lines if line.get("event") == "summary"), {})
    return {
        "congestion_offered_packets": count(summary, "sent_packets"),
        "congestion_offered_bytes": count(summary, "sent_bytes"),
    }


FAMILY = Family(Congestion, COLUMNS, measure)
KIND = Load()
