"""What arrived of a burst."""

from __future__ import annotations

from scpslab.analysis.metrics.base import Family, Subject, Values, columns, count
from scpslab.analysis.metrics.data_flows import DATA_FLOWS, DataFlow

from scpslab.kinds.workloads.burst import plan as planned


def measure(subject: Subject[planned.Burst]) -> Values:
    """The sink's count."""
    return {"burst_packets": count(subject.line("sink"), "received_packets")}


DATA_FLOWS.register("burst", DataFlow(Family(columns("burst_packets"), measure)))
