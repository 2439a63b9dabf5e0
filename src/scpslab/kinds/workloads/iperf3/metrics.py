"""What iperf3 reports about itself: rate, retransmissions, and for UDP loss and jitter."""

import numpy as np

from scpslab.analysis.metrics import base
from scpslab.analysis.metrics.base import Family, Subject, Values, columns, count, number, section
from scpslab.analysis.metrics.data_flows import DATA_FLOWS, OwnConnection
from scpslab.measure.connections import UDP, Connection
from scpslab.measure.traces import flow_of, new_bytes

from scpslab.kinds.services.gateway.metrics import resends
from scpslab.kinds.workloads.iperf3.plan import Iperf3

LEAST_PACKETS = 2  # that have a time between them
# What packets say of a flow that was cut off, and why else columns are empty.
SEEN = ("bytes", "transfer_s", "goodput_bps")
EMPTY = {
    "retransmissions": "UDP sends nothing again",
    **dict.fromkeys(("lost_packets", "jitter_ms"), "TCP has no such count"),
}
COLUMNS = columns("bytes transfer_s:9 goodput_bps:3 retransmissions lost_packets jitter_ms:6")


def measure(subject: Subject[Iperf3]) -> Values:
    """Values by column name from the end section of iperf3's JSON; of a flow that was cut off, which has none or counts
    nothing, from its packets.
    """
    end = section(section(subject.line("iperf3"), "result"), "end")
    received = section(end, "sum_received") or section(end, "sum")
    if not count(received, "bytes"):
        return base.unknown(EMPTY, "the flow was cut off before its end, when iperf3 counts") | _seen(subject)
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


def _seen(subject: Subject[Iperf3]) -> Values:
    """What arrived of its data, and from the first packet of it to the last; nothing where that is not known."""
    workload = subject.workload
    node = workload.from_ if workload.reverse else workload.to
    view = subject.cell.view(node)
    if view is None:
        return base.unknown(SEEN, f"its flow was cut off, and {base.unrecorded(node)}")
    if workload.udp_rate_bps is None:
        # The first connection is the one for control.
        mine = [one for one in view.connections if (one.server_ip, one.server_port) == (workload.to_ip, workload.port)]
        flows = [flow_of(one, from_client=not workload.reverse) for one in mine[1:]]
        arrived_bytes = sum(int(new_bytes(flow).sum()) for flow in flows)
        t_s = np.sort(np.concatenate([np.zeros(0), *(flow.t_s for flow in flows)]))
    else:
        packets = view.packets
        port = packets.source_port if workload.reverse else packets.destination_port
        is_data = (packets.protocol == UDP) & (port == workload.port)
        arrived_bytes, t_s = int(packets.payload_bytes[is_data].sum()), view.t_s[is_data]
    if len(t_s) < LEAST_PACKETS:
        return base.unknown(SEEN, f"its flow was cut off before two of its packets had come to {node}")
    transfer_s = float(t_s[-1] - t_s[0])
    rate = arrived_bytes * 8 / transfer_s if transfer_s else base.Unknown("all of its packets came at once")
    return {"bytes": arrived_bytes, "transfer_s": transfer_s, "goodput_bps": rate}


class Stream(OwnConnection):
    """The connection with the data: beside it there is one for control."""

    def from_client(self, workload: Iperf3, connection: Connection) -> bool:
        """But with `reverse`."""
        return not workload.reverse


DATA_FLOWS.register("iperf3", Stream(Family(COLUMNS, measure, empty=EMPTY)))
