"""Packets that one place saw, and the connections among them (RFC 9293 §3.1 and §3.4, RFC 7323 §2.2)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from scpslab.core.addresses import text

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"
Floats: TypeAlias = "npt.NDArray[np.float64]"

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
TCP, UDP, SCPS_TP = 6, 17, 106
ABSENT = -1  # in arrays of option values that a packet may lack


@dataclass(frozen=True)
class Seen:
    """TCP, SCPS-TP and UDP packets over IPv4 as a place saw them, n of them in their order; every array is int64[n]
    unless stated.

    `frame` counts from 1, as in Wireshark, and is 0 where no capture has them; `t_ns` since 1970 or the epoch;
    `ip_bytes` the packet's IP length; addresses as numbers; `payload_bytes` without IP, TCP and UDP headers; `seq`,
    `ack`, `window` as on the wire; `window_scale` -1 where the option is absent, and `has_options` says whether it is
    known at all.
    """

    frame: Ints
    t_ns: Ints
    ip_bytes: Ints
    protocol: Ints
    source: Ints
    destination: Ints
    source_port: Ints
    destination_port: Ints
    payload_bytes: Ints
    seq: Ints
    ack: Ints
    flags: Ints
    window: Ints
    window_scale: Ints
    is_truncated: bool
    has_options: bool = True


@dataclass(frozen=True)
class Connection:
    """One TCP (or SCPS-TP) connection, n packets in capture order.

    Client: who sent the first SYN (without one: who sent more payload). `t_s` float64[n], seconds since the epoch given
    (else since the first packet); `packet` int64[n] its place in the arrays of Packets; `from_client` bool[n]; `seq`
    and `ack` int64[n], unwrapped and relative: byte 0 is the first payload byte, so a SYN has
    -1 and an `ack` of k says that k bytes arrived; -1 stands for a packet without ACK. `window_bytes` int64[n] is
    scaled.
    SACK blocks as in Seen, relative like `ack`.
    """

    client_ip: str
    client_port: int
    server_ip: str
    server_port: int
    t_s: Floats
    packet: Ints
    from_client: Bools
    seq: Ints
    payload_bytes: Ints
    ack: Ints
    flags: Ints
    window_bytes: Ints
    ip_bytes: Ints
    is_window_scale_known: bool

    @property
    def ends(self) -> frozenset[tuple[str, int]]:
        """Address and port of both sides."""
        return frozenset(((self.client_ip, self.client_port), (self.server_ip, self.server_port)))

    @property
    def before_reset(self) -> Bools:
        """Which packets came before one side reset the connection: what then comes is another's, as where a gateway has
        stopped that had one of its own with each end.
        """
        places = np.arange(len(self.flags))
        opened = places[self.flags & SYN != 0].max(initial=-1)
        return np.asarray(places < places[(self.flags & RST != 0) & (places > opened)].min(initial=len(places)))


def has_tcp_header(protocol: Ints) -> Bools:
    """Which packets have the header of TCP: SCPS-TP that is not compressed has it too (CCSDS 714.0-B-2)."""
    # As np.isin, which takes ten times as long.
    return np.asarray((protocol == TCP) | (protocol == SCPS_TP))


def split_connections(packets: Seen, epoch_realtime_ns: int | None = None) -> list[Connection]:
    """The TCP connections among packets, by the time of their first packet; `t_s` counts from the epoch given, else
    from the first packet.
    """
    chosen = np.flatnonzero(has_tcp_header(packets.protocol))
    if not len(chosen):
        return []
    near = packets.source[chosen] << 16 | packets.source_port[chosen]
    far = packets.destination[chosen] << 16 | packets.destination_port[chosen]
    low, high = np.minimum(near, far), np.maximum(near, far)
    order = np.lexsort((high, low))
    is_other = (np.diff(low[order], prepend=-1) != 0) | (np.diff(high[order], prepend=-1) != 0)
    groups = np.split(chosen[order], np.flatnonzero(is_other)[1:])
    zero_ns = int(packets.t_ns[0]) if epoch_realtime_ns is None else epoch_realtime_ns
    return [_connection(packets, group, zero_ns) for group in sorted(groups, key=lambda group: int(group[0]))]


def _connection(packets: Seen, chosen: Ints, zero_ns: int) -> Connection:
    near = packets.source[chosen] << 16 | packets.source_port[chosen]
    flags, payload = packets.flags[chosen], packets.payload_bytes[chosen]
    opening = np.flatnonzero(flags & (SYN | ACK) == SYN)
    if len(opening):
        client = int(near[opening[0]])
    else:
        names = np.unique(near)
        client = int(max(names.tolist(), key=lambda name: (int(payload[near == name].sum()), -name)))
    from_client = near == client
    server = next(
        (int(name) for name in (packets.destination[chosen] << 16 | packets.destination_port[chosen])[from_client][:1]),
        client,
    )

    seq, ack = np.zeros(len(chosen), dtype=np.int64), np.full(len(chosen), ABSENT, dtype=np.int64)
    raw_seq, raw_ack = packets.seq[chosen], packets.ack[chosen]
    bases = {
        side: _first_byte(raw_seq[from_client == side], payload[from_client == side], flags[from_client == side])
        for side in (True, False)
    }
    scale = {side: _scale(packets.window_scale[chosen], flags, from_client == side) for side in (True, False)}
    is_scaled = scale[True] != ABSENT and scale[False] != ABSENT
    window = packets.window[chosen].copy()
    for side in (True, False):
        mine = from_client == side
        seq[mine] = unwrapped(raw_seq[mine], bases[side])
        acking = mine & (flags & ACK != 0)
        ack[acking] = unwrapped(raw_ack[acking], bases[not side])
        if is_scaled:
            # RFC 7323 §2.2: the window of a SYN is never scaled.
            window[mine & (flags & SYN == 0)] <<= scale[side]

    return Connection(
        client_ip=text(client >> 16),
        client_port=client & 0xFFFF,
        server_ip=text(server >> 16),
        server_port=server & 0xFFFF,
        t_s=(packets.t_ns[chosen] - zero_ns) / 1e9,
        packet=chosen,
        from_client=from_client,
        seq=seq,
        payload_bytes=payload,
        ack=ack,
        flags=flags,
        window_bytes=window,
        ip_bytes=packets.ip_bytes[chosen],
        is_window_scale_known=is_scaled or (packets.has_options and bool(np.any(flags & SYN))),
    )


def unwrapped(numbers: Ints, base: int | None) -> Ints:
    """Sequence numbers as distances from `base` (None: from the first of them) that do not wrap."""
    if not len(numbers):
        return numbers
    first = numbers[:1] - (int(numbers[0]) if base is None else base)
    steps = np.concatenate([first, np.diff(numbers)])
    # As RFC 9293 §3.4 compares them: modulo 2^32, the nearer way round.
    return np.cumsum((steps + 2**31) % 2**32 - 2**31)


def _first_byte(seq: Ints, payload: Ints, flags: Ints) -> int | None:
    """Sequence number of one side's first payload byte: the one after its SYN, else the lowest seen."""
    syn = np.flatnonzero(flags & SYN)
    if len(syn):
        return (int(seq[syn[0]]) + 1) % 2**32
    data = seq[payload > 0] if np.any(payload > 0) else seq[:1]
    if not len(data):
        return None
    return (int(data[0]) + int(unwrapped(data, None).min())) % 2**32


def _scale(scale: Ints, flags: Ints, mine: Bools) -> int:
    """Window shift that one side announced on its SYN, -1 for none."""
    syn = np.flatnonzero(mine & (flags & SYN != 0))
    return int(scale[syn[0]]) if len(syn) else ABSENT
