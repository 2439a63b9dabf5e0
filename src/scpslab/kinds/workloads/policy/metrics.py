"""A transfer by a policy of the user's: its time, its rate, and what it sent in vain."""

from scpslab.analysis.metrics.base import Family, Subject, Values, columns, count, number
from scpslab.analysis.metrics.data_flows import DATA_FLOWS, OF_PROGRAMS, DataFlow

from scpslab.kinds.workloads.policy.plan import Policy

COUNTS = ("sent_packets", "resent_packets")
COLUMNS = columns(f"{OF_PROGRAMS} {' '.join(COUNTS)} efficiency:9")


def measure(subject: Subject[Policy]) -> Values:
    """Values by column name from the lab's own notes."""
    ended = subject.line("end")
    size, transfer_s, sent = count(ended, "bytes"), number(ended, "transfer_s"), count(ended, "sent_packets")
    values: Values = {"bytes": size, "transfer_s": transfer_s, **{name: count(ended, name) for name in COUNTS}}
    if sent and (segments := count(ended, "segments")):
        values["efficiency"] = segments / sent
    return values | subject.rates(size, transfer_s, subject.workload.start_ns / 1e9)


DATA_FLOWS.register("policy", DataFlow(Family(COLUMNS, measure)))
