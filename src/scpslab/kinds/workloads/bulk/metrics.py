"""A bulk transfer's time and throughput, as FY97 measured them and as a user feels them."""

from __future__ import annotations

import math

from scpslab.analysis.metrics.base import Family, Subject, Value, Values, columns, count, elapsed, number, section
from scpslab.analysis.metrics.data_flows import OwnConnection
from scpslab.analysis.metrics.shape import SHAPE, WIRE
from scpslab.analysis.traces import flow_of, transfer_times
from scpslab.analysis.viewpoints import bottleneck_bps

from scpslab.kinds.workloads.bulk.plan import Bulk

COLUMNS = columns(
    {
        "bytes": None,
        "transfer_s": 9,
        "transfer_source": None,
        "transfer_from_syn_s": 9,
        "user_s": 9,
        "goodput_bps": 3,
        "throughput_report_pct": 6,
        "utilization": 9,
        "retransmissions": None,
        "superfluous_resends": None,
        "rtos": None,
        "mss_bytes": None,
        "payload_match": None,
    }
)


def measure(subject: Subject[Bulk]) -> Values:
    """Values by column name from both ends' records and the capture at the sink."""
    sender, receiver = subject.line("sender"), subject.line("receiver")
    received_bytes, segment_bytes = count(receiver, "bytes"), count(sender, "mss_bytes")
    values: Values = {
        "bytes": received_bytes,
        "user_s": elapsed(number(sender, "connect_t_s"), number(sender, "close_t_s")),
        "retransmissions": count(sender, "retransmits"),
        "superfluous_resends": count(section(sender, "scps"), "superfluous_resends"),
        "rtos": count(sender, "rtos"),
        "mss_bytes": segment_bytes,
        "payload_match": _payload_match(sender, receiver),
    }
    values |= _transfer(subject, received_bytes) or {
        "transfer_s": elapsed(number(receiver, "first_data_t_s"), number(receiver, "last_data_t_s")),
        "transfer_source": "record",
    }
    transfer_s, rate_bps = values["transfer_s"], bottleneck_bps(subject.cell.plan, subject.workload)
    rates = subject.rates(received_bytes, transfer_s)
    if rates and received_bytes and isinstance(transfer_s, float):
        most_bytes = transfer_s * rate_bps / 8 if rate_bps else math.inf
        if _has_rate(received_bytes, segment_bytes, most_bytes):
            values |= rates
            if rate_bps:
                values["throughput_report_pct"] = report_pct(received_bytes, transfer_s, rate_bps)
    return values


def report_pct(payload_bytes: int, transfer_s: float, rate_bps: float) -> float:
    """Throughput in the FY97 report's unit: Kibit (1024) over a link rate in kbit/s (1000), in percent (apparatus
    §8).
    """
    return 100 * (payload_bytes * 8 / 1024) / (transfer_s * rate_bps / 1000)


def _has_rate(received_bytes: int, segment_bytes: int | None, most_bytes: float) -> bool:
    """False for one segment, and where only the first one, whose time on the link is not counted, lifts the rate above
    the slowest hop's: the clock starts when it has arrived, so that few segments seem faster than the link.
    """
    if segment_bytes is None:
        return True
    return received_bytes > segment_bytes and not received_bytes - segment_bytes <= most_bytes < received_bytes


def _transfer(subject: Subject[Bulk], received_bytes: int | None) -> Values | None:
    """transfer_s from the capture at the sink; None when there is none or it does not hold the whole transfer."""
    connection = subject.connection_at(subject.workload.to)
    if connection is None:
        return None
    flow = flow_of(connection)
    times = transfer_times(flow)
    if times is None or flow.total_bytes != received_bytes:
        return None
    from_syn_s = elapsed(flow.syn_t_s, times[1])
    return {"transfer_s": times[1] - times[0], "transfer_source": "capture", "transfer_from_syn_s": from_syn_s}


def _payload_match(sender: dict[str, Value], receiver: dict[str, Value]) -> bool | None:
    if "wrong_bytes" in receiver:
        return receiver["wrong_bytes"] == 0 and sender.get("bytes") == receiver.get("bytes")
    if sender.get("sha256") and receiver.get("sha256"):
        return sender["sha256"] == receiver["sha256"]
    return None


KIND = OwnConnection(Family(COLUMNS, measure), WIRE, SHAPE, tells_ends=True, has_formulas=True)
