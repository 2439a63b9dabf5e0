"""Series over time from one connection: data, acknowledgements, flight, round trips, rates (apparatus M-05 to M-08).

Everything here is arithmetic on arrays; files are read elsewhere, pictures are drawn in scpslab.analysis.figures.
"""

from dataclasses import dataclass

import numpy as np

from scpslab.measure.connections import ACK, FIN, SYN, Bools, Connection, Floats, Ints


@dataclass(frozen=True)
class Flow:
    """The data of one direction and what acknowledges it, as seen at the capture point.

    Data packets, n of them: `t_s` float64[n], `seq` and `end` int64[n] (the bytes [seq, end)), `is_repeated` bool[n]:
    bytes below the highest one already seen, which at the sender's side means a retransmission. Acknowledgements, m of
    them: `ack_t_s` float64[m], `ack` int64[m] (bytes that arrived, without FIN), `window_bytes` int64[m], whose scale
    may not be known. `order` int64[n + m] puts both in capture order: data packet i is i, acknowledgement j is n + j.
    """

    t_s: Floats
    seq: Ints
    end: Ints
    is_repeated: Bools
    ack_t_s: Floats
    ack: Ints
    window_bytes: Ints
    is_window_known: bool
    order: Ints
    syn_t_s: float | None

    @property
    def total_bytes(self) -> int:
        """The end of the last byte seen."""
        return int(self.end.max(initial=0))


def flow_of(connection: Connection, *, from_client: bool = True) -> Flow:
    """The data sent by the client (or the server) and the other side's acknowledgements."""
    is_mine = connection.before_reset
    sends = connection.from_client == from_client
    is_data = is_mine & sends & (connection.payload_bytes > 0) & (connection.flags & SYN == 0)
    is_ack = is_mine & ~sends & (connection.flags & ACK != 0) & (connection.flags & SYN == 0)
    data, acks = np.flatnonzero(is_data), np.flatnonzero(is_ack)
    end = connection.seq[data] + connection.payload_bytes[data]
    highest_before = np.concatenate([[np.iinfo(np.int64).min], np.maximum.accumulate(end)[:-1]]) if len(end) else end
    total = int(end.max(initial=0))
    syn = np.flatnonzero(sends & (connection.flags & SYN != 0))
    # A FIN takes one sequence number of its own; the bytes that arrived are one fewer than its acknowledgement says.
    has_fin = bool(np.any(connection.flags[sends] & FIN))
    ack = np.minimum(connection.ack[acks], total) if has_fin else connection.ack[acks]
    return Flow(
        t_s=connection.t_s[data],
        seq=connection.seq[data],
        end=end,
        is_repeated=connection.seq[data] < highest_before,
        ack_t_s=connection.t_s[acks],
        ack=ack,
        window_bytes=connection.window_bytes[acks],
        is_window_known=connection.is_window_scale_known,
        order=np.argsort(np.concatenate([data, acks]), kind="stable"),
        syn_t_s=float(connection.t_s[syn[0]]) if len(syn) else None,
    )


def transfer_times(flow: Flow) -> tuple[float, float] | None:
    """Arrival of the first data packet and sending of the first acknowledgement of the last byte (apparatus M-01), in
    seconds; None when either is not seen.
    """
    closing = np.flatnonzero(flow.ack >= flow.total_bytes)
    if not len(flow.t_s) or not len(closing):
        return None
    return float(flow.t_s[0]), float(flow.ack_t_s[closing[0]])


def flight_bytes(flow: Flow) -> tuple[Floats, Ints]:
    """Bytes sent and not yet cumulatively acknowledged after every packet: `t_s` float64[n + m], `flight` int64[n +
    m].
    """
    count = len(flow.t_s)
    sent = np.concatenate([flow.end, np.zeros(len(flow.ack), dtype=np.int64)])[flow.order]
    acked = np.concatenate([np.zeros(count, dtype=np.int64), flow.ack])[flow.order]
    t_s = np.concatenate([flow.t_s, flow.ack_t_s])[flow.order]
    if not len(t_s):
        return t_s, sent
    return t_s, np.maximum(np.maximum.accumulate(sent) - np.maximum.accumulate(acked), 0)


def round_trips(flow: Flow) -> tuple[Floats, Floats]:
    """One sample for each acknowledgement that times a packet: `t_s` and `rtt_s`, both float64[k], at the sender."""
    acks, data = timed(flow)
    return flow.ack_t_s[acks], flow.ack_t_s[acks] - flow.t_s[data]


def timed(flow: Flow) -> tuple[Ints, Ints]:
    """The acknowledgements that time a packet, and these packets: int64[k] each, places among the flow's own.

    An acknowledgement is timed against the last packet it covers. Around losses there is no sample (apparatus M-08): an
    acknowledgement that covers a byte sent twice, or one that ends a hole, says nothing about the round trip (Karn &
    Partridge 1987).
    """
    fresh = np.flatnonzero(~flow.is_repeated)
    if not len(fresh) or not len(flow.ack):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    ends, starts = flow.end[fresh], flow.seq[fresh]
    first = np.searchsorted(ends, flow.seq[flow.is_repeated], side="right")
    last = np.maximum(np.searchsorted(starts, flow.end[flow.is_repeated], side="left"), first)
    # Every packet sent again spoils the fresh ones from its first to before its last.
    spoiling = np.bincount(first, minlength=len(fresh) + 1) - np.bincount(last, minlength=len(fresh) + 1)
    spoiled = np.cumsum(spoiling)[:-1] > 0
    # So does what the sender's own queue dropped before it was seen: an acknowledgement waits for it.
    spoiled[1:] |= starts[1:] > ends[:-1]
    spoiled_before = np.concatenate([[0], np.cumsum(spoiled)])
    highest = np.maximum.accumulate(flow.ack)
    previous = np.concatenate([[0], highest[:-1]])
    covered = np.searchsorted(ends, flow.ack, side="right")
    covered_before = np.searchsorted(ends, previous, side="right")
    usable = (
        (flow.ack > previous)
        & (covered > covered_before)
        & (spoiled_before[covered] == spoiled_before[np.minimum(covered_before, covered)])
    )
    at = np.flatnonzero(usable)
    data = fresh[covered[at] - 1]
    possible = flow.ack_t_s[at] >= flow.t_s[data]
    return at[possible], data[possible]


def held(t_s: Floats, value: Floats, at_s: Floats) -> Floats:
    """What a series that changes at `t_s` is at other times; 0 before the first change."""
    return np.concatenate([[0.0], value])[np.searchsorted(t_s, at_s, side="right")]


def time_average(t_s: Floats, value: Floats, from_s: float, to_s: float) -> float:
    """The mean over a span of time of a series that changes at `t_s`, and is 0 before."""
    edges = np.clip(t_s, from_s, to_s)
    return float((value * np.diff(edges, append=to_s)).sum()) / (to_s - from_s)


def new_bytes(flow: Flow) -> Ints:
    """For each data packet, its bytes that no earlier packet had: int64[n].

    At the sink a retransmission that fills a hole is new.
    """
    edges = np.unique(np.concatenate([flow.seq, flow.end]))
    low, high = np.searchsorted(edges, flow.seq), np.searchsorted(edges, flow.end)
    packet, piece = pieces(low, high)
    first = np.full(max(len(edges) - 1, 0), len(flow.seq), dtype=np.int64)
    np.minimum.at(first, piece, packet)
    is_new = first[piece] == packet
    width = np.diff(edges)[piece[is_new]]
    return np.bincount(packet[is_new], weights=width, minlength=len(flow.seq)).astype(np.int64)


def pieces(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """From ranges of numbers to each number in them: the range's index, and the number."""
    lengths = high - low
    index = np.repeat(np.arange(len(low)), lengths)
    return index, np.arange(len(index)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + low[index]


def queue_estimate(flow: Flow, rate_bps: float) -> tuple[Floats, Floats]:
    """The report's estimate of the router's buffer (apparatus M-08): `t_s` and `queue_bytes` = (RTT - smallest RTT) *
    rate / 8, both float64[k].
    """
    t_s, rtt_s = round_trips(flow)
    smallest_s = float(rtt_s.min()) if len(rtt_s) else 0.0
    return t_s, (rtt_s - smallest_s) * rate_bps / 8


def binned_rate(t_s: Floats, size_bytes: Ints, bin_s: float, from_s: float, to_s: float) -> tuple[Floats, Floats]:
    """Bit rate in bins of `bin_s` seconds from `from_s` on: left edges and rates in bit/s, both float64[bins]."""
    bins = max(1, int(np.ceil((to_s - from_s) / bin_s - 1e-9)))
    index = np.floor((t_s - from_s) / bin_s + 1e-9).astype(np.int64)
    inside = (index >= 0) & (index < bins)
    total = np.bincount(index[inside], weights=size_bytes[inside].astype(np.float64), minlength=bins)
    return from_s + bin_s * np.arange(bins, dtype=np.float64), np.asarray(total * 8 / bin_s, dtype=np.float64)
