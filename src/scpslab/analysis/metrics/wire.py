"""What a bulk transfer looked like on the wire at the sender's side: retransmissions, flight, windows, round trips."""

from __future__ import annotations

from scpslab.analysis.metrics.base import Column, Family, Subject, Value
from scpslab.analysis.traces import flight_bytes, flow_of, round_trips
from scpslab.analysis.viewpoints import capture_near

from scpslab.kinds.workloads.bulk.plan import Bulk

COLUMNS = (
    Column("capture_retransmissions", None, "Data packets seen at the sender's side with bytes already sent."),
    Column("max_flight_bytes", None, "Most bytes sent and not yet cumulatively acknowledged, at the sender's side."),
    Column("max_advertised_window_bytes", None, "Largest window the receiver advertised, scaled."),
    Column(
        "rtt_min_s", 9, "Smallest round trip of an acknowledgement, at the sender's side; none are taken around losses."
    ),
    Column("rtt_max_s", 9, "Largest such round trip."),
)


def measure(subject: Subject[Bulk]) -> dict[str, Value]:
    """Values by column name from the capture on the source host or on its LAN's monitor; empty without one."""
    probe = capture_near(subject.cell.plan, subject.workload.from_)
    connection = subject.connection(probe.name) if probe else None
    if connection is None:
        return {}
    flow = flow_of(connection)
    _, rtt_s = round_trips(flow)
    return {
        "capture_retransmissions": int(flow.is_repeated.sum()),
        "max_flight_bytes": int(flight_bytes(flow)[1].max(initial=0)),
        "max_advertised_window_bytes": int(flow.window_bytes.max())
        if len(flow.window_bytes) and connection.is_window_scale_known
        else None,
        "rtt_min_s": float(rtt_s.min()) if len(rtt_s) else None,
        "rtt_max_s": float(rtt_s.max()) if len(rtt_s) else None,
    }


FAMILY = Family(Bulk, COLUMNS, measure)
