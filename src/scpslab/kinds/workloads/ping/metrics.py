"""Round trips without a transport."""

from scpslab.analysis.metrics.base import Family, Subject, Values, columns, count, number
from scpslab.analysis.metrics.data_flows import DATA_FLOWS, DataFlow

from scpslab.kinds.workloads.ping.plan import Ping

COLUMNS = columns("sent received rtt_min_ms:6 rtt_mean_ms:6 rtt_max_ms:6")


EMPTY = dict.fromkeys(("rtt_min_ms", "rtt_mean_ms", "rtt_max_ms"), "no reply came back")


def measure(subject: Subject[Ping]) -> Values:
    """Values by column name from one line per reply and the summary."""
    summary = subject.line("summary")
    rtt_ms = [rtt for line in subject.lines if (rtt := number(line, "rtt_ms")) is not None]
    return {
        "sent": count(summary, "sent"),
        "received": count(summary, "received"),
        "rtt_min_ms": min(rtt_ms, default=None),
        "rtt_mean_ms": sum(rtt_ms) / len(rtt_ms) if rtt_ms else None,
        "rtt_max_ms": max(rtt_ms, default=None),
    }


DATA_FLOWS.register("ping", DataFlow(Family(COLUMNS, measure, empty=EMPTY)))
