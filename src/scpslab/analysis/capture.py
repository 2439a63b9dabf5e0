"""Captures as arrays: a pcap file in, packets out.

Reads classic pcap (micro- and nanoseconds, both byte orders) over Ethernet, raw IP and Linux cooked capture. Only
headers are looked at, so a short snap length loses nothing. IPv6 of other networks and other protocols are counted,
not read. Sources: the pcap file format (draft-ietf-opsawg-pcap), RFC 791 §3.1, RFC 8200 §3, RFC 9293 §3.1, RFC 7323
§2.2 and §3.2, RFC 2018 §3.
"""

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from scpslab.core.addresses import PREFIX, SIX
from scpslab.core.contents import LARGEST_FILE, content_of
from scpslab.core.errors import ResultError
from scpslab.measure.connections import ABSENT, SYN, UDP, Bools, Ints, Seen, has_tcp_header

# Magic number read as little endian: (byte order, nanoseconds per unit of the fraction).
MAGICS = {0xA1B2C3D4: ("<", 1000), 0xD4C3B2A1: (">", 1000), 0xA1B23C4D: ("<", 1), 0x4D3CB2A1: (">", 1)}
PCAPNG_MAGIC = 0x0A0D0D0A
FRAGMENT = 44  # of IPv6 (RFC 8200 section 4.5)
LARGEST_RECORD_BYTES = 262144  # libpcap's own largest snap length; anything above is not a record header
ETHERNET, RAW_BSD, RAW_OPENBSD, RAW, LINUX_SLL, IPV4, LINUX_SLL2 = 1, 12, 14, 101, 113, 228, 276
# Bytes before the IP header, and where in them the EtherType stands (None: the link type carries IP alone).
LINK_HEADERS: dict[int, tuple[int, int | None]] = {ETHERNET: (14, 12), LINUX_SLL: (16, 14), LINUX_SLL2: (20, 0)}
LINK_HEADERS |= dict.fromkeys((RAW, RAW_BSD, RAW_OPENBSD, IPV4), (0, None))
ETHERTYPES, VLAN_TAGS = {4: 0x0800, 6: 0x86DD}, (0x8100, 0x88A8)


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
    """Packets of IP of any protocol, n of them: `record` is the index of their record (its frame number - 1)."""

    record: Ints
    ip_bytes: Ints
    id_: Ints
    protocol: Ints
    source: Ints
    destination: Ints


def read_packets(path: Path) -> Seen:
    """The packets of a capture file; a last record cut short is left out and `is_truncated` set.

    Raises:
        ResultError: the file cannot be read or is no pcap file of a kind named above.
    """
    return decode(read_capture(path))


def read_capture(path: Path) -> PacketRecords:
    """Every whole record of a capture file; as `read_packets`."""
    try:
        content = content_of(path, LARGEST_FILE)
    except OSError as error:
        raise ResultError(f"{path}: found {error.strerror}; expected a capture file.") from error
    return read_records(content, str(path))


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
        expected = f"expected one of {', '.join(map(str, sorted(LINK_HEADERS)))}."
        raise ResultError(f"{where}: found link type {link_type}; {expected}")
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
        found = f"found a length of {captured[record]}"
        expected = f"expected at most {LARGEST_RECORD_BYTES}."
        raise ResultError(f"{where}: record {record + 1} at byte {begins[record]}: {found}; {expected}")
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


def _network_header(octets: _Bytes, records: PacketRecords) -> tuple[Ints, Ints]:
    """The offset of each record's network header, and its version of IP; 0 where it is none."""
    header_bytes, type_at = LINK_HEADERS[records.link_type]
    network = records.start + header_bytes
    if type_at is None:
        return network, octets.u8(network) >> 4
    ether_type = octets.u16(records.start + type_at)
    if records.link_type == ETHERNET:
        for _ in range(2):
            is_tagged = np.isin(ether_type, VLAN_TAGS)
            network = network + 4 * is_tagged
            ether_type = np.where(is_tagged, octets.u16(network - 2), ether_type)
    version = octets.u8(network) >> 4
    return network, sum(version * ((version == one) & (ether_type == type_)) for one, type_ in ETHERTYPES.items())


def _ip_headers(octets: _Bytes, records: PacketRecords) -> tuple[IpHeaders, Ints, Bools]:
    """The headers of IP; where the transport's begins; and whether that is there, which further fragments have not."""
    network, version = _network_header(octets, records)
    # Of IPv6 the lab's own addresses alone have numbers.
    prefix = PREFIX >> 96
    is_own = (octets.u32(network + 8) == prefix) & (octets.u32(network + 24) == prefix)
    chosen = np.flatnonzero((version == 4) | ((version == 6) & is_own))
    network, six = network[chosen], version[chosen] == 6
    # A part of a packet of IPv6 says so in a header of its own, and there what it is a part of.
    is_part = six & (octets.u8(network + 6) == FRAGMENT)
    ip_header = np.where(six, 40 + 8 * is_part, (octets.u8(network) & 0x0F) * 4)
    family = six * SIX
    headers = IpHeaders(
        record=chosen,
        ip_bytes=np.where(six, octets.u16(network + 4) + 40, octets.u16(network + 2)),
        id_=np.where(six, is_part * octets.u16(network + 46), octets.u16(network + 4)),
        protocol=octets.u8(network + np.where(is_part, 40, np.where(six, 6, 9))),
        source=octets.u32(network + np.where(six, 20, 12)) | family,
        destination=octets.u32(network + np.where(six, 36, 16)) | family,
    )
    later = np.where(six, is_part * octets.u16(network + 42) & 0xFFF8, octets.u16(network + 6) & 0x1FFF)
    is_first = later == 0
    return headers, network + ip_header, is_first & (ip_header >= 20)


def read_ip_headers(records: PacketRecords) -> IpHeaders:
    """The packets of IP among the records, those included that are neither TCP nor UDP."""
    return _ip_headers(_Bytes(records.content), records)[0]


def decode(records: PacketRecords) -> Seen:
    """The packets among the records."""
    content, t_ns = records.content, records.t_ns
    octets = _Bytes(content)
    headers, transport, keep = _ip_headers(octets, records)
    end = (records.start + records.captured)[headers.record]
    is_tcp = has_tcp_header(headers.protocol)
    header_least = np.where(is_tcp, 20, 8)
    room = headers.ip_bytes - (transport - _network_header(octets, records)[0][headers.record])
    keep &= (is_tcp | (headers.protocol == UDP)) & (transport + header_least <= end) & (room >= header_least)

    kept = np.flatnonzero(keep)
    chosen, transport, end, room = headers.record[kept], transport[kept], end[kept], room[kept]
    ip_bytes, protocol, is_tcp = headers.ip_bytes[kept], headers.protocol[kept], is_tcp[kept]
    tcp_header = np.where(is_tcp, np.maximum((octets.u8(transport + 12) >> 4) * 4, 20), 8)
    flags = np.where(is_tcp, octets.u8(transport + 13), 0)
    return Seen(
        frame=chosen + 1,
        t_ns=t_ns[chosen],
        ip_bytes=ip_bytes,
        protocol=protocol,
        source=headers.source[kept],
        destination=headers.destination[kept],
        source_port=octets.u16(transport),
        destination_port=octets.u16(transport + 2),
        payload_bytes=np.maximum(room - tcp_header, 0),
        seq=np.where(is_tcp, octets.u32(transport + 4), 0),
        ack=np.where(is_tcp, octets.u32(transport + 8), 0),
        flags=flags,
        window=np.where(is_tcp, octets.u16(transport + 14), 0),
        window_scale=_window_scales(content, transport + 20, np.minimum(transport + tcp_header, end), flags & SYN != 0),
        is_truncated=records.is_truncated,
    )


def _window_scales(content: bytes, start: Ints, end: Ints, is_syn: Bools) -> Ints:
    """The window scale option of each SYN, -1 where there is none: the one option that an analysis uses."""
    scales = np.full(len(start), ABSENT, dtype=np.int64)
    for index in np.flatnonzero(is_syn).tolist():
        at, stop = int(start[index]), int(end[index])
        while at + 1 < stop and content[at] != 0:
            kind, size = content[at], content[at + 1]
            if kind == 1:
                at += 1
                continue
            if size < 2 or at + size > stop:
                break
            if kind == 3 and size == 3:
                scales[index] = min(content[at + 2], 14)  # RFC 7323 §2.3: a larger shift counts as 14
            at += size
    return scales
