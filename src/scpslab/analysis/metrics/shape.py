"""How a bulk transfer went over time, as numbers: what FY97's appendix A reads off its figures A-1 to A-24."""

from __future__ import annotations

import numpy as np

from scpslab.analysis.capture import FIN, SYN, UDP, Bools, Connection, Floats, Ints
from scpslab.analysis.metrics.base import Column, Family, Subject, Value, number
from scpslab.analysis.metrics.data_flows import load_ports
from scpslab.analysis.run import RunCell
from scpslab.analysis.traces import (
    Flow,
    binned_rate,
    flight_bytes,
    flow_of,
    queue_estimate,
    round_trips,
    transfer_times,
)
from scpslab.analysis.viewpoints import bottleneck, capture_at, capture_beside, capture_near, queue_probe
from scpslab.plan.ways import Hop

from scpslab.kinds.workloads.bulk.plan import Bulk

FLIGHTS = 4
HEADER_BYTES = 56  # with which the report reckons (A.1, A.2): 1400 bytes of data are 1456 on the link
BIN_S = 0.5  # its bins (apparatus M-06)
CONGESTION_BIN_S = 1.0  # two round trips: TCP answers a change after one
LEAST_BINS = 5
BURST_S = 0.1  # A.2.1: 72 segments in about 100 ms
NEARLY = 0.95
END_SHARE = 0.1  # the last tenth of a transfer is its end

COLUMNS = (
    *(
        Column(
            f"flight_{index}_segments",
            None,
            f"Data packets in flight {index} after the handshake; a pause of half a round trip ends a flight.",
        )
        for index in range(1, FLIGHTS + 1)
    ),
    Column(
        "first_ack_delay_s", 9, "At the sink: from the arrival of the first data to the first acknowledgement of it."
    ),
    Column(
        "linear_from_s", 6, "From the SYN until what one round trip acknowledges first comes at 95 % of the final rate."
    ),
    Column("final_rate_bps", 3, "User bits per second acknowledged in the second half of the transfer's time."),
    Column("peak_rate_bps", 3, "Most user bits per second sent in a bin of 0.5 s."),
    Column(
        "queue_end_packets",
        6,
        "Estimated queue, (RTT - smallest RTT) * rate, in the last tenth, in packets of a segment and 56 bytes.",
    ),
    Column("queue_mean_bytes", 3, "True queue before the hop during the transfer, time average of the queue probe."),
    Column(
        "queue_estimate_r",
        6,
        "Correlation of the estimated queue with the true one at the instants when the packets were sent.",
    ),
    Column("repair_s", 9, "From the first sending of the first segment that is sent again to its second."),
    Column(
        "longest_silence_s", 9, "Longest time without a data packet from the sender after its first retransmission."
    ),
    Column(
        "burst_segments", None, "Most data packets that the sender sent within 100 ms after its first retransmission."
    ),
    Column(
        "flight_share_after_recovery",
        6,
        (
            "Median flight between one and two seconds after the last retransmission, over the largest flight "
            "before the first."
        ),
    ),
    Column("ack_bytes", None, "Most common length of a packet that only acknowledges, as IP packet, from the sink."),
    Column(
        "rate_congestion_r",
        6,
        (
            "Correlation of the transfer's sending rate with the congestion traffic's, in bins of 1 s from "
            "linear_from_s on."
        ),
    ),
    Column(
        "window_growth_segments_per_s",
        6,
        "Growth of the flight from 2 s after the first retransmission on, up to the next one or the end.",
    ),
)


def measure(subject: Subject[Bulk]) -> dict[str, Value]:
    """Values by column name; empty without a capture near the source."""
    plan, workload = subject.cell.plan, subject.workload
    probe = capture_near(plan, workload.from_)
    connection = subject.connection(probe.name) if probe else None
    if connection is None:
        return {}
    flow = flow_of(connection)
    if not len(flow.t_s) or not len(flow.ack):
        return {}
    hop = bottleneck(plan, workload)
    found: dict[str, Value] = {**_start(flow), **_rates(flow), **_after_loss(flow)}
    found |= {"first_ack_delay_s": _first_ack_delay(subject), "ack_bytes": _ack_bytes(connection)}
    found["rate_congestion_r"] = _against_congestion(subject, flow, found.get("linear_from_s"))
    if hop and hop.direction.rate_bps:
        found |= _queue(subject.cell, flow, hop.direction.rate_bps, hop)
    return found


FAMILY = Family(Bulk, COLUMNS, measure)


def flights(t_s: Floats, pause_s: float) -> list[int]:
    """Sizes of the runs of packets that are closer together than `pause_s`."""
    ends = np.flatnonzero(np.diff(t_s) > pause_s) + 1
    return [len(part) for part in np.split(t_s, ends)]


def _start(flow: Flow) -> dict[str, Value]:
    _, rtt_s = round_trips(flow)
    if not len(rtt_s):
        return {}
    fresh = flow.t_s[~flow.is_repeated]
    sizes = flights(fresh, float(rtt_s.min()) / 2)
    return {f"flight_{index}_segments": size for index, size in enumerate(sizes[:FLIGHTS], start=1)}


def _rates(flow: Flow) -> dict[str, Value]:
    times = transfer_times(flow)
    if times is None:
        return {}
    start_s, end_s = times
    highest = np.maximum.accumulate(flow.ack)
    half_s = start_s + (end_s - start_s) / 2
    reached = float(np.interp(half_s, flow.ack_t_s, highest))
    final_bps = (flow.total_bytes - reached) * 8 / (end_s - half_s) if end_s > half_s else 0.0
    bins = binned_rate(flow.t_s, flow.end - flow.seq, BIN_S, start_s, float(flow.t_s.max()))[1]
    found: dict[str, Value] = {"final_rate_bps": final_bps, "peak_rate_bps": float(bins.max())}
    _, rtt_s = round_trips(flow)
    if len(rtt_s) and final_bps > 0:
        window_s = float(rtt_s.min())
        rate_bps = (highest - np.interp(flow.ack_t_s - window_s, flow.ack_t_s, highest, left=0.0)) * 8 / window_s
        fast = np.flatnonzero(rate_bps >= NEARLY * final_bps)
        zero_s = flow.syn_t_s if flow.syn_t_s is not None else start_s
        found["linear_from_s"] = float(flow.ack_t_s[fast[0]]) - zero_s if len(fast) else None
    return found


def _first_ack_delay(subject: Subject[Bulk]) -> Value:
    probe = capture_at(subject.cell.plan, subject.workload.to)
    connection = subject.connection(probe.name) if probe else None
    if connection is None:
        return None
    flow = flow_of(connection)
    answered = flow.ack_t_s[flow.ack > 0]
    return float(answered[0] - flow.t_s[0]) if len(answered) and len(flow.t_s) else None


def _ack_bytes(connection: Connection) -> Value:
    """The most common length among the sink's packets without data, handshake and closing."""
    plain = ~connection.from_client & (connection.payload_bytes == 0) & (connection.flags & (SYN | FIN) == 0)
    lengths = connection.ip_bytes[plain]
    return int(np.bincount(lengths).argmax()) if len(lengths) else None


def _against_congestion(subject: Subject[Bulk], flow: Flow, linear_from_s: Value) -> Value:
    """Correlation of two rates; None without congestion traffic, or with too few bins to tell."""
    plan, zero_s = subject.cell.plan, flow.syn_t_s
    ports = load_ports(plan)
    probe = capture_beside(plan, subject.workload.from_)
    packets = subject.cell.packets(probe.name) if probe and ports else None
    if packets is None or zero_s is None or not isinstance(linear_from_s, float):
        return None
    is_congestion = (packets.protocol == UDP) & np.isin(packets.destination_port, ports)
    congestion_t_s = (packets.t_ns[is_congestion] - (subject.cell.epoch_realtime_ns or 0)) / 1e9
    span = (CONGESTION_BIN_S, zero_s + linear_from_s, float(flow.t_s.max()))
    rates = (
        binned_rate(flow.t_s, flow.end - flow.seq, *span)[1],
        binned_rate(congestion_t_s, packets.ip_bytes[is_congestion], *span)[1],
    )
    if len(rates[0]) < LEAST_BINS or min(rate.std() for rate in rates) == 0:
        return None
    return float(np.corrcoef(*rates)[0, 1])


def _queue(cell: RunCell, flow: Flow, rate_bps: int, hop: Hop) -> dict[str, Value]:
    """Estimated and true queue before the hop; what needs the probe only where there is one."""
    ack_t_s, estimate_bytes = queue_estimate(flow, rate_bps)
    if not len(ack_t_s):
        return {}
    _, rtt_s = round_trips(flow)
    last = ack_t_s >= ack_t_s[-1] - END_SHARE * (ack_t_s[-1] - ack_t_s[0])
    packet_bytes = int((flow.end - flow.seq).max()) + HEADER_BYTES
    found: dict[str, Value] = {"queue_end_packets": float(estimate_bytes[last].mean()) / packet_bytes}
    t_s, depth_bytes = queue_samples(cell, hop)
    during: Bools = (t_s >= flow.t_s[0]) & (t_s <= ack_t_s[-1])
    if np.count_nonzero(during) > 1:
        found["queue_mean_bytes"] = float(depth_bytes[during].mean())
        true_bytes = np.interp(ack_t_s - rtt_s, t_s, depth_bytes)
        if true_bytes.std() > 0 and estimate_bytes.std() > 0:
            found["queue_estimate_r"] = float(np.corrcoef(true_bytes, estimate_bytes)[0, 1])
    return found


def queue_samples(cell: RunCell, hop: Hop) -> tuple[Floats, Floats]:
    """Samples of the queue probe before the hop: seconds since the epoch and bytes, both float64[n]; empty without
    one.
    """
    probe = queue_probe(cell.plan, hop)
    lines = cell.records(probe.name) if probe else []
    samples = [
        (t_s, size)
        for line in lines
        if (t_s := number(line, "t_s")) is not None and (size := number(line, "bytes")) is not None
    ]
    table = np.array(samples, dtype=np.float64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _after_loss(flow: Flow) -> dict[str, Value]:
    again = np.flatnonzero(flow.is_repeated)
    if not len(again):
        return {}
    first = again[0]
    earlier = np.flatnonzero((flow.seq[:first] <= flow.seq[first]) & (flow.end[:first] > flow.seq[first]))
    since_s = flow.t_s[first]
    sent_s = flow.t_s[flow.t_s >= since_s]
    within = np.searchsorted(sent_s, sent_s + BURST_S, side="right") - np.arange(len(sent_s))
    found: dict[str, Value] = {"burst_segments": int(within.max())}
    if len(earlier):
        found["repair_s"] = float(since_s - flow.t_s[earlier[-1]])
    if len(sent_s) > 1:
        found["longest_silence_s"] = float(np.diff(sent_s).max())
    return found | _share_after(flow, again) | _growth(flow, float(since_s), again)


def _share_after(flow: Flow, again: Ints) -> dict[str, Value]:
    t_s, flight = flight_bytes(flow)
    last_s = float(flow.t_s[again[-1]])
    before = flight[t_s < flow.t_s[again[0]]]
    after = flight[(t_s >= last_s + 1) & (t_s <= last_s + 2)]
    return (
        {"flight_share_after_recovery": float(np.median(after)) / int(before.max())}
        if len(before) and len(after)
        else {}
    )


def _growth(flow: Flow, since_s: float, again: Ints) -> dict[str, Value]:
    """Slope of the flight after recovery, in segments per second."""
    later = flow.t_s[again][flow.t_s[again] > since_s + 2]
    until_s = float(later[0]) if len(later) else float(flow.t_s.max())
    t_s, flight = flight_bytes(flow)
    inside = (t_s >= since_s + 2) & (t_s <= until_s)
    if np.count_nonzero(inside) < 3 or until_s - since_s < 4:
        return {}
    segment = int((flow.end - flow.seq).max())
    return {"window_growth_segments_per_s": float(np.polyfit(t_s[inside], flight[inside] / segment, 1)[0])}
