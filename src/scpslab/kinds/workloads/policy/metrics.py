"""A transfer by a policy of the user's: its time, its rate, and what it sent in vain."""

from __future__ import annotations

from scpslab.analysis.metrics.base import Column, Family, Subject, Value, count, number
from scpslab.analysis.metrics.data_flows import DataFlow
from scpslab.analysis.viewpoints import bottleneck_bps

from scpslab.kinds.workloads.policy.plan import Policy

COLUMNS = (
    Column("bytes", None, "Bytes that arrived, each once, and were compared with those sent."),
    Column("transfer_s", 9, "From the start of the workload to the arrival of the last segment."),
    Column("goodput_bps", 3, "bytes * 8 / transfer_s."),
    Column("utilization", 9, "bytes * 8 / (transfer_s * rate of the slowest hop on the data path)."),
    Column("sent_packets", None, "Packets that the policy has sent until then."),
    Column("resent_packets", None, "Those of them that it had sent before."),
    Column("efficiency", 9, "Segments of the transfer, over packets sent."),
)


def measure(subject: Subject[Policy]) -> dict[str, Value]:
    """Values by column name from the lab's own notes."""
    ended = next((line for line in subject.cell.records(subject.workload.name) if line.get("event") == "end"), {})
    size, transfer_s = count(ended, "bytes"), number(ended, "transfer_s")
    sent, segments = count(ended, "sent_packets"), count(ended, "segments")
    values: dict[str, Value] = {
        "bytes": size,
        "transfer_s": transfer_s,
        "sent_packets": sent,
        "resent_packets": count(ended, "resent_packets"),
    }
    if sent and segments:
        values["efficiency"] = segments / sent
    if size and transfer_s:
        values["goodput_bps"] = size * 8 / transfer_s
        if rate_bps := bottleneck_bps(subject.cell.plan, subject.workload):
            values["utilization"] = size * 8 / (transfer_s * rate_bps)
    return values


FAMILY = Family(Policy, COLUMNS, measure)
KIND = DataFlow()
