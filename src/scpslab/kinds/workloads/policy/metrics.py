"""A transfer by a policy of the user's: its time, its rate, and what it sent in vain."""

from __future__ import annotations

from scpslab.analysis.metrics.base import Family, Subject, Values, columns, count, number
from scpslab.analysis.metrics.data_flows import DataFlow

from scpslab.kinds.workloads.policy.plan import Policy

COLUMNS = columns(
    {
        "bytes": None,
        "transfer_s": 9,
        "goodput_bps": 3,
        "utilization": 9,
        "sent_packets": None,
        "resent_packets": None,
        "efficiency": 9,
    }
)


def measure(subject: Subject[Policy]) -> Values:
    """Values by column name from the lab's own notes."""
    ended = subject.line("end")
    size, transfer_s = count(ended, "bytes"), number(ended, "transfer_s")
    sent, segments = count(ended, "sent_packets"), count(ended, "segments")
    values: Values = {
        "bytes": size,
        "transfer_s": transfer_s,
        "sent_packets": sent,
        "resent_packets": count(ended, "resent_packets"),
    }
    if sent and segments:
        values["efficiency"] = segments / sent
    return values | subject.rates(size, transfer_s)


KIND = DataFlow(Family(COLUMNS, measure))
