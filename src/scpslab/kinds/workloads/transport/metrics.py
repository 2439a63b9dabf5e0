"""A transfer by a sender and a receiver of the user's: its time, its rate, and what it cost."""

from scpslab.analysis.metrics.base import Family, Subject, Values, columns, count, number
from scpslab.analysis.metrics.data_flows import DATA_FLOWS, OF_PROGRAMS, DataFlow

from scpslab.kinds.workloads.transport.plan import Transport

COUNTS = ("sent_packets", "sent_bytes", "returned_packets", "unread_packets")
COLUMNS = columns(f"{OF_PROGRAMS} {' '.join(COUNTS)} efficiency:9")


def measure(subject: Subject[Transport]) -> Values:
    """Values by column name from the lab's own notes."""
    ended = subject.line("end")
    size, transfer_s, sent = count(ended, "bytes"), number(ended, "transfer_s"), count(ended, "sent_bytes")
    values: Values = {"bytes": size, "transfer_s": transfer_s, **{name: count(ended, name) for name in COUNTS}}
    if size and sent:
        values["efficiency"] = size / sent
    return values | subject.rates(size, transfer_s, subject.workload.start_ns / 1e9)


DATA_FLOWS.register("transport", DataFlow(Family(COLUMNS, measure)))
