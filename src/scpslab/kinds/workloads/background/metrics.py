"""What the FY97 congestion generator offered."""

from scpslab.analysis.metrics.base import Family, Subject, Values, columns, count
from scpslab.analysis.metrics.data_flows import DATA_FLOWS, Load

from scpslab.kinds.workloads.background.plan import Background

COLUMNS = columns("congestion_offered_packets congestion_offered_bytes")


def measure(subject: Subject[Background]) -> Values:
    """Values by column name from the generator's summary."""
    summary = subject.line("summary")
    return {f"congestion_offered_{what}": count(summary, f"sent_{what}") for what in ("packets", "bytes")}


DATA_FLOWS.register("background", Load(Family(COLUMNS, measure)))
