"""A bulk transfer's time and throughput, as FY97 measured them and as a user feels them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from scpslab.analysis.metrics.base import Column, Family, Subject, Value, count, number
from scpslab.analysis.metrics.data_flows import OwnConnection
from scpslab.analysis.traces import flow_of, transfer_times
from scpslab.analysis.viewpoints import bottleneck_bps, capture_at

from scpslab.kinds.workloads.bulk.plan import Bulk

# The clock starts when the first segment has arrived, so that few segments seem faster than the link.
NO_RATE = (
    "Empty, as the next two, for a transfer of one segment, or of so few that leaving out the first one's time "
    "gives more than the slowest hop's rate."
)
COLUMNS = (
    Column("bytes", None, "Payload bytes that the sink received."),
    Column(
        "transfer_s",
        9,
        (
            "FY97's delay (apparatus M-01), at the sink: arrival of the first data packet to sending of the "
            "acknowledgement of the last byte."
        ),
    ),
    Column(
        "transfer_source",
        None,
        (
            "`capture`: from the packets at the sink; `record`: no usable capture there, first to last read of the "
            "receiving program."
        ),
    ),
    Column(
        "transfer_from_syn_s",
        9,
        "The same end, counted from the arrival of the SYN (apparatus M-01 leaves open which first packet is meant).",
    ),
    Column("user_s", 9, "Connect to close at the source: what a user waits."),
    Column("goodput_bps", 3, f"bytes * 8 / transfer_s. {NO_RATE}"),
    Column(
        "throughput_report_pct",
        6,
        (
            "FY97's unit: bytes * 8 / 1024 as a share of transfer_s * link rate / 1000, in percent. "
            "SI percent is this * 1.024."
        ),
    ),
    Column("utilization", 9, "bytes * 8 / (transfer_s * rate of the slowest hop on the data path)."),
    Column("retransmissions", None, "Segments sent again, as the sender's TCP counts them."),
    Column(
        "superfluous_resends",
        None,
        "SCPS-TP: segments sent again whose first copy had arrived, by the sender's own estimate.",
    ),
    Column("rtos", None, "Retransmission timeouts of the sender's TCP."),
    Column("mss_bytes", None, "Payload bytes of a full segment."),
    Column(
        "payload_match", None, "`true` when every byte arrived as it was sent (compared byte by byte, or by SHA-256)."
    ),
)


def measure(subject: Subject[Bulk]) -> dict[str, Value]:
    """Values by column name from both ends' records and the capture at the sink."""
    cell, workload = subject.cell, subject.workload
    ends = {str(line.get("event")): line for line in cell.records(workload.name)}
    sender, receiver = ends.get("sender", {}), ends.get("receiver", {})
    received_bytes = count(receiver, "bytes")
    values: dict[str, Value] = {
        "bytes": received_bytes,
        "user_s": _elapsed(sender, "connect_t_s", "close_t_s"),
        "retransmissions": count(sender, "retransmits"),
        "superfluous_resends": _superfluous(sender),
        "rtos": count(sender, "rtos"),
        "mss_bytes": count(sender, "mss_bytes"),
        "payload_match": _payload_match(sender, receiver),
    }
    values |= _transfer(subject, received_bytes) or {
        "transfer_s": _elapsed(receiver, "first_data_t_s", "last_data_t_s"),
        "transfer_source": "record",
    }
    transfer_s, rate_bps = values["transfer_s"], bottleneck_bps(cell.plan, workload)
    if received_bytes and isinstance(transfer_s, float) and transfer_s > 0 and _has_rate(values, transfer_s, rate_bps):
        values["goodput_bps"] = received_bytes * 8 / transfer_s
        if rate_bps:
            values["utilization"] = received_bytes * 8 / (transfer_s * rate_bps)
            values["throughput_report_pct"] = report_pct(received_bytes, transfer_s, rate_bps)
    return values


def report_pct(payload_bytes: int, transfer_s: float, rate_bps: float) -> float:
    """Throughput in the FY97 report's unit: Kibit (1024) over a link rate in kbit/s (1000), in percent (apparatus
    §8).
    """
    return 100 * (payload_bytes * 8 / 1024) / (transfer_s * rate_bps / 1000)


def _has_rate(values: Mapping[str, Value], transfer_s: float, rate_bps: int | None) -> bool:
    """False for one segment, and where only the first one, whose time on the link is not counted, lifts the rate above
    the slowest hop's.
    """
    received_bytes, segment_bytes = values["bytes"], values["mss_bytes"]
    if not isinstance(received_bytes, int) or not isinstance(segment_bytes, int):
        return True
    most_bytes = transfer_s * rate_bps / 8 if rate_bps else math.inf
    return received_bytes > segment_bytes and not received_bytes - segment_bytes <= most_bytes < received_bytes


def _transfer(subject: Subject[Bulk], received_bytes: int | None) -> dict[str, Value] | None:
    """transfer_s from the capture at the sink; None when there is none or it does not hold the whole transfer."""
    probe = capture_at(subject.cell.plan, subject.workload.to)
    connection = subject.connection(probe.name) if probe else None
    if connection is None:
        return None
    flow = flow_of(connection)
    times = transfer_times(flow)
    if times is None or flow.total_bytes != received_bytes:
        return None
    from_syn_s = None if flow.syn_t_s is None else times[1] - flow.syn_t_s
    return {"transfer_s": times[1] - times[0], "transfer_source": "capture", "transfer_from_syn_s": from_syn_s}


def _elapsed(fields: dict[str, object], start: str, end: str) -> float | None:
    begin_s, end_s = number(fields, start), number(fields, end)
    return None if begin_s is None or end_s is None else end_s - begin_s


def _superfluous(sender: dict[str, object]) -> int | None:
    scps = sender.get("scps")
    return count(scps, "superfluous_resends") if isinstance(scps, dict) else None


def _payload_match(sender: dict[str, object], receiver: dict[str, object]) -> bool | None:
    if "wrong_bytes" in receiver:
        return receiver["wrong_bytes"] == 0 and sender.get("bytes") == receiver.get("bytes")
    if sender.get("sha256") and receiver.get("sha256"):
        return sender["sha256"] == receiver["sha256"]
    return None


FAMILY = Family(Bulk, COLUMNS, measure)
KIND = OwnConnection()
