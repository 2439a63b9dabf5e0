"""A bulk transfer: its time and throughput, as FY97 measured them and as a user feels them; what it looked like on the
wire at the sender's side; how it went over time, which is what FY97's appendix A reads off its figures A-1 to A-24.
"""

from typing import cast

import numpy as np

from scpslab.analysis.metrics import base, data_flows
from scpslab.analysis.metrics.base import Family, Subject, Value, Values, columns, count, elapsed, number, section
from scpslab.analysis.run import RunCell, Transfer, bottleneck
from scpslab.core.strict_json import JsonObject
from scpslab.measure import traces
from scpslab.measure.connections import FIN, SYN, Floats, Ints
from scpslab.plan.paths import Hop

from scpslab.kinds.workloads.bulk.plan import Bulk

FLIGHTS = 4
GROWTH = "window_growth_segments_per_s"
FLIGHT_COLUMNS = tuple(f"flight_{index}_segments" for index in range(1, FLIGHTS + 1))
HEADER_BYTES = 56  # with which the report reckons (A.1, A.2): 1400 bytes of data are 1456 on the link
BIN_S = 0.5  # its bins (apparatus M-06)
CONGESTION_BIN_S = 1.0  # two round trips: TCP answers a change after one
LEAST_BINS = 5
BURST_S = 0.1  # A.2.1: 72 segments in about 100 ms
NEARLY = 0.95
END_SHARE = 0.1  # the last tenth of a transfer is its end

COLUMNS = columns(
    "bytes transfer_s:9 transfer_source transfer_from_syn_s:9 user_s:9 goodput_bps:3 throughput_report_pct:6 "
    "utilization:9 retransmissions superfluous_resends rtos mss_bytes payload_match"
)
WIRE_COLUMNS = columns(
    "capture_retransmissions max_flight_bytes max_advertised_window_bytes rtt_min_s:9 rtt_max_s:9 wire_rtt_min_s:9 "
    "wire_rtt_max_s:9"
)
SHAPE_COLUMNS = columns(
    f"{' '.join(FLIGHT_COLUMNS)} first_ack_delay_s:9 linear_from_s:6 final_rate_bps:3 peak_rate_bps:3 "
    "queue_end_packets:6 queue_mean_bytes:3 queue_estimate_r:6 repair_s:9 longest_silence_s:9 burst_segments "
    f"flight_share_after_recovery:6 ack_bytes rate_congestion_r:6 {GROWTH}:6"
)


# The FY97 report's unit: Kibit (1024) over a link rate in kbit/s (1000), in percent (apparatus §8).
REPORT_PCT = 100_000 / 1024
NO_TRIP = "no acknowledgement could be timed against one packet"
QUEUE_COLUMNS = ("queue_end_packets", "queue_mean_bytes", "queue_estimate_r")
LOSS_COLUMNS = ("repair_s", "longest_silence_s", "burst_segments", "flight_share_after_recovery", GROWTH)
NO_QUEUE = "the queue before the slowest hop is not known"
EMPTY = {
    "transfer_from_syn_s": "the SYN, or the whole transfer, was not seen at the sink",
    "superfluous_resends": "only SCPS-TP counts them",
    "max_advertised_window_bytes": "no whole capture at the source has the opening, which says the scale",
    **dict.fromkeys(("rtt_min_s", "rtt_max_s", "wire_rtt_min_s", "wire_rtt_max_s", "queue_end_packets"), NO_TRIP),
    **dict.fromkeys(FLIGHT_COLUMNS, "there were fewer flights"),
    "first_ack_delay_s": "no acknowledgement of the first data was seen at the sink",
    "linear_from_s": "no round trip was at 95 % of the final rate",
    **dict.fromkeys(("final_rate_bps", "peak_rate_bps"), "no acknowledgement of the last byte was seen"),
    "queue_mean_bytes": NO_QUEUE,
    "queue_estimate_r": f"{NO_QUEUE}, or never changed",
    "repair_s": "the first sending was not seen",
    "longest_silence_s": "nothing was sent after the first retransmission",
    "flight_share_after_recovery": "no packet came between one and two seconds after the last retransmission",
    "ack_bytes": "the sink sent nothing that only acknowledges",
    "rate_congestion_r": "too little of both was sent to compare",
    GROWTH: "the next retransmission, or the end, came too soon",
}


def measure(subject: Subject[Bulk]) -> Values:
    """Values by column name from both ends' records and the packets at the sink."""
    sender, receiver = subject.line("sender"), subject.line("receiver")
    received_bytes, segment_bytes = count(receiver, "bytes"), count(sender, "mss_bytes")
    is_cut = sender.get("status") == "incomplete"
    values: Values = {
        "bytes": received_bytes,
        "user_s": None if is_cut else elapsed(number(sender, "connect_t_s"), number(sender, "close_t_s")),
        "retransmissions": count(sender, "retransmits"),
        "superfluous_resends": count(section(sender, "scps"), "superfluous_resends"),
        "rtos": count(sender, "rtos"),
        "mss_bytes": segment_bytes,
        "payload_match": _payload_match(sender, receiver),
    }
    seen = _transfer(subject, received_bytes)
    start_s = seen[0] if seen else number(receiver, "first_data_t_s")
    values |= (
        seen[1]
        if seen
        else {"transfer_s": elapsed(start_s, number(receiver, "last_data_t_s")), "transfer_source": "record"}
    )
    transfer_s = values["transfer_s"]
    rates = subject.rates(received_bytes, transfer_s, start_s, segment_bytes)
    used = rates["utilization"]
    return values | rates | {"throughput_report_pct": REPORT_PCT * used if isinstance(used, float) else used}


def _transfer(subject: Subject[Bulk], received_bytes: int | None) -> tuple[float, Values] | None:
    """The start of the transfer and its columns from the packets at the sink; None when they are not known or do not
    hold the whole transfer.
    """
    connection = subject.connection_at(subject.workload.to)
    if connection is None:
        return None
    flow = traces.flow_of(connection)
    times = traces.transfer_times(flow)
    if times is None or flow.total_bytes != received_bytes:
        return None
    took = {"transfer_s": times[1] - times[0], "transfer_from_syn_s": elapsed(flow.syn_t_s, times[1])}
    return times[0], {**took, "transfer_source": "packets"}


def _payload_match(sender: JsonObject, receiver: JsonObject) -> bool | None:
    if "wrong_bytes" in receiver:
        return receiver["wrong_bytes"] == 0 and sender.get("bytes") == receiver.get("bytes")
    if sender.get("sha256") and receiver.get("sha256"):
        return sender["sha256"] == receiver["sha256"]
    return None


def measure_wire(subject: Subject[Bulk]) -> Values:
    """Retransmissions, flight, windows and round trips from the packets at the source; empty where they are not
    known.
    """
    connection = subject.connection_at(subject.workload.from_)
    if connection is None:
        return base.unknown((column.name for column in WIRE_COLUMNS), subject.unseen(subject.workload.from_))
    flow = traces.flow_of(connection)
    _, rtt_s = traces.round_trips(flow)
    return {
        "capture_retransmissions": int(flow.is_repeated.sum()),
        "max_flight_bytes": int(traces.flight_bytes(flow)[1].max(initial=0)),
        "max_advertised_window_bytes": _window_bytes(subject),
        "rtt_min_s": float(rtt_s.min()) if len(rtt_s) else None,
        "rtt_max_s": float(rtt_s.max()) if len(rtt_s) else None,
        **data_flows.wire_round_trips(
            subject.connection_at(subject.workload.from_, behind_queue=True),
            from_client=True,
            names=("wire_rtt_min_s", "wire_rtt_max_s"),
        ),
    }


def _window_bytes(subject: Subject[Bulk]) -> int | None:
    """The receiver's largest window, whose scale is an option; None where no capture has it."""
    captured = subject.cell.captured(subject.workload.from_)
    connection = captured.connection(cast("Transfer", subject.workload)) if captured else None
    flow = traces.flow_of(connection) if connection else None
    return max(flow.window_bytes.tolist(), default=None) if flow and flow.is_window_known else None


def measure_shape(subject: Subject[Bulk]) -> Values:
    """Values by column name; empty where the packets at the source, or, for one, the sink are not known."""
    names, at_sink = [column.name for column in SHAPE_COLUMNS], {"first_ack_delay_s": _first_ack_delay(subject)}
    connection = subject.connection_at(subject.workload.from_)
    if connection is None:
        return base.unknown(names, subject.unseen(subject.workload.from_)) | at_sink
    flow = traces.flow_of(connection)
    if not len(flow.t_s) or not len(flow.ack):
        return base.unknown(names, "no data were sent, or none acknowledged") | at_sink
    hop = bottleneck(subject.cell.plan, subject.workload)
    values: Values = {**at_sink, **_start(flow), **_rates_reached(flow), **_after_loss(flow)}
    values["ack_bytes"] = data_flows.ack_bytes(connection, from_client=False, without=SYN | FIN)
    values["rate_congestion_r"] = _against_congestion(subject, flow, values.get("linear_from_s"))
    if hop and hop.direction.rate_bps:
        return values | _queue(subject.cell, flow, hop.direction.rate_bps, hop)
    return values | base.unknown(QUEUE_COLUMNS, "no hop has a rate")


def flights(t_s: Floats, pause_s: float) -> list[int]:
    """Sizes of the runs of packets that are closer together than `pause_s`."""
    ends = np.flatnonzero(np.diff(t_s) > pause_s) + 1
    return [len(part) for part in np.split(t_s, ends)]


def _start(flow: traces.Flow) -> Values:
    _, rtt_s = traces.round_trips(flow)
    if not len(rtt_s):
        return base.unknown(FLIGHT_COLUMNS, NO_TRIP)
    fresh = flow.t_s[~flow.is_repeated]
    sizes = flights(fresh, float(rtt_s.min()) / 2)
    return dict(zip(FLIGHT_COLUMNS, sizes, strict=False))


def _rates_reached(flow: traces.Flow) -> Values:
    times = traces.transfer_times(flow)
    if times is None:
        return {}
    start_s, end_s = times
    highest = np.maximum.accumulate(flow.ack)
    half_s = start_s + (end_s - start_s) / 2
    reached = float(np.interp(half_s, flow.ack_t_s, highest, left=0.0))
    final_bps = (flow.total_bytes - reached) * 8 / (end_s - half_s) if end_s > half_s else 0.0
    bins = traces.binned_rate(flow.t_s, flow.end - flow.seq, BIN_S, start_s, float(flow.t_s.max()))[1]
    values: Values = {"final_rate_bps": final_bps, "peak_rate_bps": float(bins.max())}
    _, rtt_s = traces.round_trips(flow)
    if len(rtt_s) and final_bps > 0:
        window_s = float(rtt_s.min())
        rate_bps = (highest - np.interp(flow.ack_t_s - window_s, flow.ack_t_s, highest, left=0.0)) * 8 / window_s
        fast = np.flatnonzero(rate_bps >= NEARLY * final_bps)
        zero_s = flow.syn_t_s if flow.syn_t_s is not None else start_s
        values["linear_from_s"] = float(flow.ack_t_s[fast[0]]) - zero_s if len(fast) else None
    return values


def _first_ack_delay(subject: Subject[Bulk]) -> Value:
    connection = subject.connection_at(subject.workload.to)
    if connection is None:
        return base.Unknown(subject.unseen(subject.workload.to))
    flow = traces.flow_of(connection)
    answered = flow.ack_t_s[flow.ack > 0]
    return float(answered[0] - flow.t_s[0]) if len(answered) and len(flow.t_s) else None


def _against_congestion(subject: Subject[Bulk], flow: traces.Flow, linear_from_s: Value) -> Value:
    """Correlation of two rates; None without congestion traffic, or with too few bins to tell."""
    if not data_flows.loads_of(subject.cell.plan):
        return base.Unknown("there is no congestion traffic")
    if flow.syn_t_s is None or not isinstance(linear_from_s, float):
        return None
    load_t_s, load_bytes = data_flows.load_packets(subject.cell)
    span = (CONGESTION_BIN_S, flow.syn_t_s + linear_from_s, float(flow.t_s.max()))
    rates = (
        traces.binned_rate(flow.t_s, flow.end - flow.seq, *span)[1],
        traces.binned_rate(load_t_s, load_bytes, *span)[1],
    )
    if len(rates[0]) < LEAST_BINS or min(rate.std() for rate in rates) == 0:
        return None
    return float(np.corrcoef(*rates)[0, 1])


def _queue(cell: RunCell, flow: traces.Flow, rate_bps: int, hop: Hop) -> Values:
    """Estimated and true queue before the hop; the true one only where it is known."""
    ack_t_s, estimate_bytes = traces.queue_estimate(flow, rate_bps)
    if not len(ack_t_s):
        return {}
    _, rtt_s = traces.round_trips(flow)
    last = ack_t_s >= ack_t_s[-1] - END_SHARE * (ack_t_s[-1] - ack_t_s[0])
    packet_bytes = int((flow.end - flow.seq).max()) + HEADER_BYTES
    values: Values = {"queue_end_packets": float(estimate_bytes[last].mean()) / packet_bytes}
    t_s, depth_bytes = cell.record.depth(*hop.place) if cell.record else (ack_t_s[:0], ack_t_s[:0])
    if len(t_s) and t_s[0] <= ack_t_s[-1]:
        values["queue_mean_bytes"] = traces.time_average(t_s, depth_bytes, float(flow.t_s[0]), float(ack_t_s[-1]))
        true_bytes = traces.held(t_s, depth_bytes, ack_t_s - rtt_s)
        if true_bytes.std() > 0 and estimate_bytes.std() > 0:
            values["queue_estimate_r"] = float(np.corrcoef(true_bytes, estimate_bytes)[0, 1])
    return values


def _after_loss(flow: traces.Flow) -> Values:
    again = np.flatnonzero(flow.is_repeated)
    if not len(again):
        return base.unknown(LOSS_COLUMNS, "nothing was sent again")
    first = again[0]
    earlier = np.flatnonzero((flow.seq[:first] <= flow.seq[first]) & (flow.end[:first] > flow.seq[first]))
    since_s = flow.t_s[first]
    sent_s = flow.t_s[flow.t_s >= since_s]
    within = np.searchsorted(sent_s, sent_s + BURST_S, side="right") - np.arange(len(sent_s))
    values: Values = {"burst_segments": int(within.max())}
    if len(earlier):
        values["repair_s"] = float(since_s - flow.t_s[earlier[-1]])
    if len(sent_s) > 1:
        values["longest_silence_s"] = float(np.diff(sent_s).max())
    return values | _share_after(flow, again) | _growth(flow, float(since_s), again)


def _share_after(flow: traces.Flow, again: Ints) -> Values:
    t_s, flight = traces.flight_bytes(flow)
    last_s = float(flow.t_s[again[-1]])
    before = flight[t_s < flow.t_s[again[0]]]
    after = flight[(t_s >= last_s + 1) & (t_s <= last_s + 2)]
    return (
        {"flight_share_after_recovery": float(np.median(after)) / int(before.max())}
        if len(before) and len(after)
        else {}
    )


def _growth(flow: traces.Flow, since_s: float, again: Ints) -> Values:
    """Slope of the flight after recovery, in segments per second."""
    later = flow.t_s[again][flow.t_s[again] > since_s + 2]
    until_s = float(later[0]) if len(later) else float(flow.t_s.max())
    t_s, flight = traces.flight_bytes(flow)
    inside = (t_s >= since_s + 2) & (t_s <= until_s)
    # Changes that all come in one instant have no slope.
    if np.count_nonzero(inside) < 3 or until_s - since_s < 4 or not np.ptp(t_s[inside]):
        return {}
    segment = int((flow.end - flow.seq).max())
    return {GROWTH: float(np.polyfit(t_s[inside], flight[inside] / segment, 1)[0])}


data_flows.DATA_FLOWS.register(
    "bulk",
    data_flows.OwnConnection(
        Family(COLUMNS, measure, of_topology={"throughput_report_pct": "fy97"}, empty=EMPTY),
        Family(WIRE_COLUMNS, measure_wire, empty=EMPTY),
        Family(SHAPE_COLUMNS, measure_shape, empty=EMPTY),
        tells_ends=True,
        has_formulas=True,
    ),
)
