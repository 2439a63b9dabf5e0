"""A transfer by the programs of the hosts' images: what the lab itself sees of it, whatever they speak."""

from __future__ import annotations

from scpslab.analysis.metrics.base import Column, Family, Subject, Value, count, number
from scpslab.analysis.metrics.data_flows import DataFlow
from scpslab.analysis.viewpoints import bottleneck_bps

from scpslab.kinds.workloads.endpoint.plan import Endpoint

COLUMNS = (
    Column("bytes", None, "Payload bytes that the receiving program says it had."),
    Column("transfer_s", 9, "Start of the sending program to the end of the receiving one."),
    Column("user_s", 9, "Start to end of the sending program: what a user waits."),
    Column("goodput_bps", 3, "bytes * 8 / transfer_s."),
    Column("utilization", 9, "bytes * 8 / (transfer_s * rate of the slowest hop on the data path)."),
)


def measure(subject: Subject[Endpoint]) -> dict[str, Value]:
    """Values by column name from the lab's own notes of starts and ends."""
    lines = subject.cell.records(subject.workload.name)
    start_s = next((number(line, "t_s") for line in lines if line.get("event") == "start"), None)
    ends = {str(line.get("role")): line for line in lines if line.get("event") == "end"}
    received_bytes = count(ends.get("receive", {}), "bytes")
    transfer_s, user_s = (_since(start_s, number(ends.get(role, {}), "t_s")) for role in ("receive", "send"))
    values: dict[str, Value] = {"bytes": received_bytes, "transfer_s": transfer_s, "user_s": user_s}
    if received_bytes and transfer_s:
        values["goodput_bps"] = received_bytes * 8 / transfer_s
        if rate_bps := bottleneck_bps(subject.cell.plan, subject.workload):
            values["utilization"] = received_bytes * 8 / (transfer_s * rate_bps)
    return values


def _since(start_s: float | None, end_s: float | None) -> float | None:
    return None if start_s is None or end_s is None else end_s - start_s


FAMILY = Family(Endpoint, COLUMNS, measure)
KIND = DataFlow()
