"""A transfer by the programs of the hosts' images: what the lab itself sees of it, whatever they speak."""

from scpslab.analysis.metrics.base import Family, Subject, Values, columns, count, elapsed, number
from scpslab.analysis.metrics.data_flows import DATA_FLOWS, DataFlow

from scpslab.kinds.workloads.endpoint.plan import Endpoint

COLUMNS = columns("bytes transfer_s:9 user_s:9 goodput_bps:3 utilization:9")


def measure(subject: Subject[Endpoint]) -> Values:
    """Values by column name from the lab's own notes of starts and ends."""
    start_s = number(subject.line("start"), "t_s")
    ends = {str(line.get("role")): line for line in subject.lines if line.get("event") == "end"}
    receiver, sender = ends.get("receive", {}), ends.get("send", {})
    received_bytes, transfer_s = count(receiver, "bytes"), elapsed(start_s, number(receiver, "t_s"))
    user_s = elapsed(start_s, number(sender, "t_s")) if sender.get("code") == 0 else None
    values: Values = {"bytes": received_bytes, "transfer_s": transfer_s, "user_s": user_s}
    return values | subject.rates(received_bytes, transfer_s, start_s)


DATA_FLOWS.register("endpoint", DataFlow(Family(COLUMNS, measure)))
