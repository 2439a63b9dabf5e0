"""A transfer by a policy of the user's: its time, its rate, and what it sent in vain."""

from __future__ import annotations

from scpslab.analysis.metrics.base import Family, Subject, Values, columns, count, number
from scpslab.analysis.metrics.data_flows import DATA_FLOWS, DataFlow

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
COUNTS = ("sent_packets", "resent_packets")


def measure(subject: Subject[Policy]) -> Values:
    """Values by column name from the lab's own notes."""
    ended = subject.line("end")
    size, transfer_s, sent = count(ended, "bytes"), number(ended, "transfer_s"), count(ended, "sent_packets")
    values: Values = {"bytes": size, "transfer_s": transfer_s, **{name: count(ended, name) for name in COUNTS}}
    if sent and (segments := count(ended, "segments")):
        values["efficiency"] = segments / sent
    return values | subject.rates(size, transfer_s)


DATA_FLOWS.register("policy", DataFlow(Family(COLUMNS, measure)))
