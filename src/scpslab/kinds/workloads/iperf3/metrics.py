"""What iperf3 reports about itself: rate, retransmissions, and for UDP loss and jitter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scpslab.analysis.metrics.base import Family, Subject, Values, columns, count, number, section
from scpslab.analysis.metrics.data_flows import DATA_FLOWS, OwnConnection

from scpslab.kinds.services.gateway.metrics import resends
from scpslab.kinds.workloads.iperf3.plan import Iperf3

if TYPE_CHECKING:
    from scpslab.analysis.capture import Connection

COLUMNS = columns(
    {
        "bytes": None,
        "transfer_s": 9,
        "goodput_bps": 3,
        "retransmissions": None,
        "lost_packets": None,
        "jitter_ms": 6,
    }
)


def measure(subject: Subject[Iperf3]) -> Values:
    """Values by column name from the end section of iperf3's JSON."""
    end = section(section(subject.line("iperf3"), "result"), "end")
    received = section(end, "sum_received") or section(end, "sum")
    workload = subject.workload
    sender = workload.to if workload.reverse else workload.from_
    gateway = subject.cell.plan.cell.gateway_of(sender) if workload.udp_rate_bps is None else None
    return {
        "bytes": count(received, "bytes"),
        "transfer_s": number(received, "seconds"),
        "goodput_bps": number(received, "bits_per_second"),
        "retransmissions": resends(subject.cell.records, gateway.name)
        if gateway
        else count(section(end, "sum_sent"), "retransmits"),
        "lost_packets": count(received, "lost_packets"),
        "jitter_ms": number(received, "jitter_ms"),
    }


class Stream(OwnConnection):
    """The connection with the data: beside it there is one for control."""

    def from_client(self, workload: Iperf3, connection: Connection) -> bool:
        """But with `reverse`."""
        return not workload.reverse


DATA_FLOWS.register("iperf3", Stream(Family(COLUMNS, measure)))
