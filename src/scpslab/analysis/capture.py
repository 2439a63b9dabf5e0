"""Captures as arrays: a pcap file in, packets and TCP connections out.

Reads classic pcap (micro- and nanoseconds, both byte orders) over Ethernet, raw IP and Linux cooked capture. Only
headers are looked at, so a short snap length loses nothing. IPv6 and other protocols are counted, not read. Sources:
the pcap file format (draft-ietf-opsawg-pcap), RFC 791 §3.1, RFC 9293 §3.1, RFC 7323 §2.2 and §3.2, RFC 2018 §3.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from scpslab.core.errors import ResultError
from scpslab.measure.pcapng import Frame, Interface, written

Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Floats: TypeAlias = npt.NDArray[np.float64]

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
TCP, UDP, SCPS_TP = 6, 17, 106
# SCPS-TP (uncompressed) has the header of TCP (CCSDS 714.0-B-2); 106 is the protocol number that implementations use
# for it.
TCP_HEADERS = (TCP, SCPS_TP)
ABSENT = -1  # in arrays of option values that a packet may lack

# Magic number read as little endian: (byte order, nanoseconds per unit of the fraction).
MAGICS = {0xA1B2C3D4: ("<", 1000), 0xD4C3B2A1: (">", 1000), 0xA1B23C4D: ("<", 1), 0x4D3CB2A1: (">", 1)}
PCAPNG_MAGIC = 0x0A0D0D0A
LARGEST_RECORD_BYTES = 262144  # libpcap's own largest snap length; anything above is not a record header
ETHERNET, RAW_BSD, RAW_OPENBSD, RAW, LINUX_SLL, IPV4, LINUX_SLL2 = 1, 12, 14, 101, 113, 228, 276
# Bytes before the IP header, and where in them the EtherType stands (None: the link type carries IP alone).
LINK_HEADERS: dict[int, tuple[int, int | None]] = {ETHERNET: (14, 12), LINUX_SLL: (16, 14), LINUX_SLL2: (20, 0)}
LINK_HEADERS |= dict.fromkeys((RAW, RAW_BSD, RAW_OPENBSD, IPV4), (0, None))
ETHERTYPE_IPV4, VLAN_TAGS = 0x0800, (0x8100, 0x88A8)
# No-op, no-op, kind 8, length 10: what every packet of a timestamped connection starts its options with.
TIMESTAMP_PATTERN = 0x0101080A
SACK_PATTERN = 0x01010502  # no-op, no-op, kind 5; with the bytes of its blocks it is the option's head


@dataclass(frozen=True)
class PacketRecords:
    """A capture file, n records; every array is int64[n].

    `t_ns` since 1970; `start` the offset of the frame in `content`; `captured` and `whole` its length in the file and
    on the wire.
    """

    content: bytes
    link_type: int
    snaplen: int
    t_ns: Ints
    start: Ints
    captured: Ints
    whole: Ints
    is_truncated: bool


@dataclass(frozen=True)
class IpHeaders:
    """IPv4 packets of any protocol, n of them: `record` is the index of their record (its frame number - 1), `start`
    the header's place in the file.
    """

    record: Ints
    start: Ints
    ip_bytes: Ints
    protocol: Ints
    source: Ints
    destination: Ints


@dataclass(frozen=True)
class Packets:
    """TCP, SCPS-TP and UDP packets over IPv4, n of them in file order; every array is int64[n] unless stated.

    `frame` counts from 1, as in Wireshark; `t_ns` since 1970; `ip_bytes` the packet's IP length; addresses as numbers;
    `payload_bytes` without IP, TCP and UDP headers;
    `seq`, `ack`, `window` as on the wire; `timestamp` and `timestamp_echo`, `window_scale` and `mss_bytes` -1 where the
    option is absent. SACK blocks stand apart, m of them: block i belongs to packet `sack_packet[i]` and covers
    [`sack_left[i]`, `sack_right[i]`).
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
    timestamp: Ints
    timestamp_echo: Ints
    window_scale: Ints
    mss_bytes: Ints
    sack_packet: Ints
    sack_left: Ints
    sack_right: Ints
    unread_packets: int
    is_truncated: bool


@dataclass(frozen=True)
class Connection:
    """One TCP (or SCPS-TP) connection, n packets in capture order.

    Client: who sent the first SYN (without one: who sent more payload). `t_s` float64[n], seconds since the epoch given
    (else since the first packet); `packet` int64[n] its place in the arrays of Packets; `from_client` bool[n]; `seq`
    and `ack` int64[n], unwrapped and relative: byte 0 is the first payload byte, so a SYN has
    -1 and an `ack` of k says that k bytes arrived; -1 stands for a packet without ACK. `window_bytes` int64[n] is
    scaled.
    SACK blocks as in Packets, relative like `ack`.
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
    timestamp: Ints
    timestamp_echo: Ints
    ip_bytes: Ints
    sack_packet: Ints
    sack_left: Ints
    sack_right: Ints
    is_window_scale_known: bool


def read_packets(path: Path) -> Packets:
    """The packets of a capture file; a last record cut short is left out and `is_truncated` set.

    Raises:
        ResultError: the file cannot be read or is no pcap file of a kind named above.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ResultError(f"{path}: {error.strerror}; expected a capture file.") from error
    return parse_packets(content, str(path))


def parse_packets(content: bytes, where: str) -> Packets:
    """As `read_packets`, from bytes; `where` names them in errors."""
    return decode(read_records(content, where))


def read_records(content: bytes, where: str) -> PacketRecords:
    """Every whole record of a capture file; `where` names it in errors.

    Raises:
        ResultError: it is no pcap file of a kind named above.
    """
    if len(content) < 24:
        raise ResultError(f"{where}: found {len(content)} bytes; expected a pcap file, which has a header of 24.")
    magic = struct.unpack_from("<I", content)[0]
    if magic == PCAPNG_MAGIC:
        raise ResultError(f'{where}: found pcapng; expected pcap. Convert it with "editcap -F nsecpcap".')
    if magic not in MAGICS:
        raise ResultError(f"{where}: found magic number {magic:#010x}; expected a pcap file.")
    order, unit_ns = MAGICS[magic]
    snaplen, network = struct.unpack_from(order + "II", content, 16)
    # The upper bits of the link type field carry the length of a frame check sequence, not the type.
    link_type = network & 0x0FFFFFFF
    if link_type not in LINK_HEADERS:
        raise ResultError(
            f"{where}: found link type {link_type}; expected one of {', '.join(map(str, sorted(LINK_HEADERS)))}."
        )
    t_ns, start, captured, whole, is_truncated = _records(content, order, unit_ns, where)
    return PacketRecords(content, link_type, snaplen, t_ns, start, captured, whole, is_truncated)


def _records(content: bytes, order: str, unit_ns: int, where: str) -> tuple[Ints, Ints, Ints, Ints, bool]:
    """Time, offset, captured length and length on the wire of every whole record."""
    length = struct.Struct(order + "I").unpack_from
    at, last = 24, len(content) - 16
    begins: list[int] = []
    # Only this is read record by record: where the next one begins.
    while at <= last:
        begins.append(at)
        at += 16 + length(content, at + 8)[0]
    begin = np.array(begins, dtype=np.int64)
    headers = np.frombuffer(content, dtype=np.uint8)[begin[:, None] + np.arange(16)].view(order + "u4")
    seconds, fraction, captured, whole = headers.astype(np.int64).T
    for record in np.flatnonzero(captured > LARGEST_RECORD_BYTES)[:1].tolist():
        raise ResultError(
            f"{where}: record {record + 1} at byte {begins[record]}: found a length of {captured[record]}; "
            f"expected at most {LARGEST_RECORD_BYTES}."
        )
    # The last one may be cut short.
    is_whole = begin + 16 + captured <= len(content)
    t_ns = seconds * 10**9 + fraction * unit_ns
    return t_ns[is_whole], begin[is_whole] + 16, captured[is_whole], whole[is_whole], at != len(content)


class _Bytes:
    """Big-endian numbers at arrays of offsets; past the end there are zeros, so no offset can go wrong."""

    def __init__(self, content: bytes) -> None:
        self._octets = np.concatenate([np.frombuffer(content, dtype=np.uint8), np.zeros(256, dtype=np.uint8)])

    def u8(self, at: Ints) -> Ints:
        return self._octets[np.minimum(at, len(self._octets) - 1)].astype(np.int64)

    def u16(self, at: Ints) -> Ints:
        return self.u8(at) << 8 | self.u8(at + 1)

    def u32(self, at: Ints) -> Ints:
        return self.u16(at) << 16 | self.u16(at + 2)


def _network_header(octets: _Bytes, records: PacketRecords) -> tuple[Ints, Bools]:
    """The offset of each record's network header, and whether that is IPv4."""
    header_bytes, type_at = LINK_HEADERS[records.link_type]
    network = records.start + header_bytes
    if type_at is None:
        return network, octets.u8(network) >> 4 == 4
    ether_type = octets.u16(records.start + type_at)
    if records.link_type == ETHERNET:
        for _ in range(2):
            is_tagged = np.isin(ether_type, VLAN_TAGS)
            network = network + 4 * is_tagged
            ether_type = np.where(is_tagged, octets.u16(network - 2), ether_type)
    return network, (ether_type == ETHERTYPE_IPV4) & (octets.u8(network) >> 4 == 4)


def read_ip_headers(records: PacketRecords) -> IpHeaders:
    """The IPv4 packets among the records, those included that are neither TCP nor UDP."""
    octets = _Bytes(records.content)
    network, is_ip = _network_header(octets, records)
    chosen = np.flatnonzero(is_ip)
    network = network[chosen]
    return IpHeaders(
        record=chosen,
        start=network,
        ip_bytes=octets.u16(network + 2),
        protocol=octets.u8(network + 9),
        source=octets.u32(network + 12),
        destination=octets.u32(network + 16),
    )


def decode(records: PacketRecords) -> Packets:
    """The packets among the records."""
    content, t_ns = records.content, records.t_ns
    octets = _Bytes(content)
    end = records.start + records.captured
    network, is_ip = _network_header(octets, records)
    ip_header = (octets.u8(network) & 0x0F) * 4
    ip_bytes, protocol = octets.u16(network + 2), octets.u8(network + 9)
    transport = network + ip_header
    # A fragment other than the first has no transport header.
    is_first = octets.u16(network + 6) & 0x1FFF == 0
    is_tcp = _has_tcp_header(protocol)
    header_least = np.where(is_tcp, 20, 8)
    keep = is_ip & is_first & (ip_header >= 20) & (is_tcp | (protocol == UDP)) & (transport + header_least <= end)
    keep &= ip_bytes >= ip_header + header_least

    chosen = np.flatnonzero(keep)
    network, transport, end, ip_header = network[chosen], transport[chosen], end[chosen], ip_header[chosen]
    ip_bytes, protocol, is_tcp = ip_bytes[chosen], protocol[chosen], is_tcp[chosen]
    tcp_header = np.where(is_tcp, np.maximum((octets.u8(transport + 12) >> 4) * 4, 20), 8)
    options = _options(content, octets, transport + 20, np.minimum(transport + tcp_header, end), is_tcp)
    return Packets(
        frame=chosen + 1,
        t_ns=t_ns[chosen],
        ip_bytes=ip_bytes,
        protocol=protocol,
        source=octets.u32(network + 12),
        destination=octets.u32(network + 16),
        source_port=octets.u16(transport),
        destination_port=octets.u16(transport + 2),
        payload_bytes=np.maximum(ip_bytes - ip_header - tcp_header, 0),
        seq=np.where(is_tcp, octets.u32(transport + 4), 0),
        ack=np.where(is_tcp, octets.u32(transport + 8), 0),
        flags=np.where(is_tcp, octets.u8(transport + 13), 0),
        window=np.where(is_tcp, octets.u16(transport + 14), 0),
        unread_packets=len(t_ns) - len(chosen),
        is_truncated=records.is_truncated,
        **options,
    )


def _has_tcp_header(protocol: Ints) -> Bools:
    # As np.isin, which takes ten times as long.
    return np.asarray((protocol == TCP) | (protocol == SCPS_TP))


def _options(content: bytes, octets: _Bytes, start: Ints, end: Ints, is_tcp: Bools) -> dict[str, Ints]:
    """The TCP options an analysis uses.

    The patterns of timestamps and SACK blocks, as Linux writes them, are read in one go, everything else packet by
    packet.
    """
    timestamp, echo, scale, mss = (np.full(len(start), ABSENT, dtype=np.int64) for _ in range(4))
    has_options = is_tcp & (end > start)
    is_timed = has_options & (end - start >= 12) & (octets.u32(start) == TIMESTAMP_PATTERN)
    sack = start + 12 * is_timed
    sack_bytes = end - sack - 4
    is_sack = has_options & (sack_bytes >= 8) & (sack_bytes % 8 == 0)
    is_sack &= octets.u32(sack) == SACK_PATTERN + sack_bytes
    is_plain = is_sack | (is_timed & (sack == end))
    is_timed &= is_plain
    timestamp[is_timed] = octets.u32(start[is_timed] + 4)
    echo[is_timed] = octets.u32(start[is_timed] + 8)
    blocks: list[tuple[int, int, int]] = []
    for index in np.flatnonzero(has_options & ~is_plain).tolist():
        at, stop = int(start[index]), int(end[index])
        while at + 1 < stop and content[at] != 0:
            kind, size = content[at], content[at + 1]
            if kind == 1:
                at += 1
                continue
            if size < 2 or at + size > stop:
                break
            if kind == 2 and size == 4:
                mss[index] = int.from_bytes(content[at + 2 : at + 4], "big")
            elif kind == 3 and size == 3:
                scale[index] = min(content[at + 2], 14)  # RFC 7323 §2.3: a larger shift counts as 14
            elif kind == 8 and size == 10:
                timestamp[index], echo[index] = struct.unpack_from(">II", content, at + 2)
            elif kind == 5 and (size - 2) % 8 == 0:
                blocks += [(index, *struct.unpack_from(">II", content, edge)) for edge in range(at + 2, at + size, 8)]
            at += size
    owner = np.repeat(np.flatnonzero(is_sack), sack_bytes[is_sack] // 8)
    # The number of each block in its packet: counted from the first block of the packet.
    edge = sack[owner] + 4 + 8 * (np.arange(len(owner)) - np.searchsorted(owner, owner))
    table = np.concatenate(
        [np.array(blocks, dtype=np.int64).reshape(-1, 3), np.stack([owner, octets.u32(edge), octets.u32(edge + 4)], 1)]
    )
    table = table[np.argsort(table[:, 0], kind="stable")]
    return {
        "timestamp": timestamp,
        "timestamp_echo": echo,
        "window_scale": scale,
        "mss_bytes": mss,
        "sack_packet": table[:, 0],
        "sack_left": table[:, 1],
        "sack_right": table[:, 2],
    }


def split_connections(packets: Packets, epoch_realtime_ns: int | None = None) -> list[Connection]:
    """The TCP connections of a capture, by the time of their first packet; `t_s` counts from the epoch given, else from
    the first packet.
    """
    chosen = np.flatnonzero(_has_tcp_header(packets.protocol))
    if not len(chosen):
        return []
    near = packets.source[chosen] << 16 | packets.source_port[chosen]
    far = packets.destination[chosen] << 16 | packets.destination_port[chosen]
    pair = np.stack([np.minimum(near, far), np.maximum(near, far)], axis=1)
    _, first, label = np.unique(pair, axis=0, return_index=True, return_inverse=True)
    zero_ns = int(packets.t_ns[0]) if epoch_realtime_ns is None else epoch_realtime_ns
    groups = sorted(range(len(first)), key=lambda group: int(first[group]))
    return [_connection(packets, chosen[label.reshape(-1) == group], zero_ns) for group in groups]


def _connection(packets: Packets, chosen: Ints, zero_ns: int) -> Connection:
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
        seq[mine] = _unwrap(raw_seq[mine], bases[side])
        acking = mine & (flags & ACK != 0)
        ack[acking] = _unwrap(raw_ack[acking], bases[not side])
        if is_scaled:
            # RFC 7323 §2.2: the window of a SYN is never scaled.
            window[mine & (flags & SYN == 0)] <<= scale[side]

    place = np.full(len(packets.t_ns), ABSENT, dtype=np.int64)
    place[chosen] = np.arange(len(chosen))
    sacks = np.flatnonzero(place[packets.sack_packet] != ABSENT)
    owner = place[packets.sack_packet[sacks]]
    return Connection(
        client_ip=str(ipaddress.IPv4Address(client >> 16)),
        client_port=client & 0xFFFF,
        server_ip=str(ipaddress.IPv4Address(server >> 16)),
        server_port=server & 0xFFFF,
        t_s=(packets.t_ns[chosen] - zero_ns) / 1e9,
        packet=chosen,
        from_client=from_client,
        seq=seq,
        payload_bytes=payload,
        ack=ack,
        flags=flags,
        window_bytes=window,
        timestamp=packets.timestamp[chosen],
        timestamp_echo=packets.timestamp_echo[chosen],
        ip_bytes=packets.ip_bytes[chosen],
        sack_packet=owner,
        sack_left=ack[owner] + _signed(packets.sack_left[sacks] - raw_ack[owner]),
        sack_right=ack[owner] + _signed(packets.sack_right[sacks] - raw_ack[owner]),
        is_window_scale_known=is_scaled or bool(np.any(flags & SYN)),
    )


def _signed(difference: Ints) -> Ints:
    """Differences of sequence numbers as RFC 9293 §3.4 compares them: modulo 2^32, the nearer way round."""
    return (difference + 2**31) % 2**32 - 2**31


def _unwrap(numbers: Ints, base: int | None) -> Ints:
    """Sequence numbers as distances from `base` (None: from the first of them) that do not wrap."""
    if not len(numbers):
        return numbers
    first = numbers[:1] - (int(numbers[0]) if base is None else base)
    return np.cumsum(_signed(np.concatenate([first, np.diff(numbers)])))


def _first_byte(seq: Ints, payload: Ints, flags: Ints) -> int | None:
    """Sequence number of one side's first payload byte: the one after its SYN, else the lowest seen."""
    syn = np.flatnonzero(flags & SYN)
    if len(syn):
        return (int(seq[syn[0]]) + 1) % 2**32
    data = seq[payload > 0] if np.any(payload > 0) else seq[:1]
    if not len(data):
        return None
    return (int(data[0]) + int(_unwrap(data, None).min())) % 2**32


def _scale(scale: Ints, flags: Ints, mine: Bools) -> int:
    """Window shift that one side announced on its SYN, -1 for none."""
    syn = np.flatnonzero(mine & (flags & SYN != 0))
    return int(scale[syn[0]]) if len(syn) else ABSENT


def annotated(records: PacketRecords, interface: str, comments: Mapping[int, str]) -> bytes:
    """The file's bytes as pcapng: every record as it was, in its order, with the comments of the frames (counted from
    1) that have one.
    """
    rows = zip(
        records.t_ns.tolist(), records.start.tolist(), records.captured.tolist(), records.whole.tolist(), strict=True
    )
    frames = (
        Frame(0, t_ns, records.content[start : start + captured], whole, comments.get(frame, ""))
        for frame, (t_ns, start, captured, whole) in enumerate(rows, start=1)
    )
    return written([Interface(interface, records.link_type, records.snaplen)], frames)
