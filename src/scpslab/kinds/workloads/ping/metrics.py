"""Round trips without a transport."""

from __future__ import annotations

from scpslab.analysis.metrics.base import Column, Family, Subject, Value, count, number
from scpslab.analysis.metrics.data_flows import DataFlow

from scpslab.kinds.workloads.ping.plan import Ping

COLUMNS = (
    Column("sent", None, "Echo requests sent."),
    Column("received", None, "Echo replies that came back."),
    Column("rtt_min_ms", 6, "Smallest round trip."),
    Column("rtt_mean_ms", 6, "Mean of the round trips."),
    Column("rtt_max_ms", 6, "Largest round trip."),
)


def measure(subject: Subject[Ping]) -> dict[str, Value]:
    """Values by column name from one line per reply and the summary."""
    lines = subject.cell.records(subject.workload.name)
    summary = next((line for line in lines if line.get("event") == "summary"), {})
    rtt_ms = [rtt for line in lines if (rtt := number(line, "rtt_ms")) is not None]
    return {
        "sent": count(summary, "sent"),
        "received": count(summary, "received"),
        "rtt_min_ms": min(rtt_ms, default=None),
        "rtt_mean_ms": sum(rtt_ms) / len(rtt_ms) if rtt_ms else None,
        "rtt_max_ms": max(rtt_ms, default=None),
    }


FAMILY = Family(Ping, COLUMNS, measure)
KIND = DataFlow()
