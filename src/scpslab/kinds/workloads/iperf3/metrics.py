"""What iperf3 reports about itself: rate, retransmissions, and for UDP loss and jitter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scpslab.analysis.metrics.base import Column, Family, Subject, Value, count, number, section
from scpslab.analysis.metrics.data_flows import OwnConnection

from scpslab.kinds.services.gateway.metrics import gateway_of, resends
from scpslab.kinds.workloads.iperf3.plan import Iperf3

if TYPE_CHECKING:
    from scpslab.analysis.capture import Connection

COLUMNS = (
    Column("bytes", None, "Payload bytes received (iperf3's own count at the receiver)."),
    Column("transfer_s", 9, "Seconds over which iperf3 counted them."),
    Column("goodput_bps", 3, "Received payload bits per second, as iperf3 reports them."),
    Column(
        "retransmissions",
        None,
        "Segments sent again (TCP only); on a host of stack scps by its gateway, for all its connections.",
    ),
    Column("lost_packets", None, "Datagrams that did not arrive (UDP only)."),
    Column("jitter_ms", 6, "Mean deviation of the transit time (UDP only, RFC 3550 §6.4.1)."),
)


def measure(subject: Subject[Iperf3]) -> dict[str, Value]:
    """Values by column name from the end section of iperf3's JSON."""
    lines = subject.cell.records(subject.workload.name)
    result = next((line.get("result") for line in lines if line.get("event") == "iperf3"), None)
    end = section(result, "end")
    received = section(end, "sum_received") or section(end, "sum")
    sent = section(end, "sum_sent")
    workload = subject.workload
    sender = workload.to if workload.reverse else workload.from_
    gateway = gateway_of(subject.cell.plan, sender) if workload.udp_rate_bps is None else None
    return {
        "bytes": count(received, "bytes"),
        "transfer_s": number(received, "seconds"),
        "goodput_bps": number(received, "bits_per_second"),
        "retransmissions": resends(subject.cell, gateway.name) if gateway else count(sent, "retransmits"),
        "lost_packets": count(received, "lost_packets"),
        "jitter_ms": number(received, "jitter_ms"),
    }


class Stream(OwnConnection):
    """The connection with the data: beside it there is one for control."""

    def from_client(self, workload: Iperf3, connection: Connection) -> bool:
        """But with `reverse`."""
        return not workload.reverse


FAMILY = Family(Iperf3, COLUMNS, measure)
KIND = Stream()
