"""Writes packets with comments as pcapng (draft-ietf-opsawg-pcapng), which Wireshark and tshark show."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SECTION_HEADER, INTERFACE_DESCRIPTION, ENHANCED_PACKET = 0x0A0D0D0A, 1, 6
BYTE_ORDER_MAGIC, UNKNOWN_LENGTH = 0x1A2B3C4D, -1
END_OF_OPTIONS, COMMENT, INTERFACE_NAME, APPLICATION, TIME_RESOLUTION = 0, 1, 2, 4, 9
NANOSECONDS = b"\x09"


@dataclass(frozen=True)
class Interface:
    """Where packets were seen: its name, its link type (LINKTYPE_ of pcap), and the most bytes of a packet (0: all)."""

    name: str
    link_type: int
    snaplen: int


@dataclass(frozen=True)
class Frame:
    """A packet: the number of its interface, when (ns since 1970), its bytes, how many it had, and a comment or ""."""

    interface: int
    t_ns: int
    content: bytes
    whole: int
    comment: str


def written(interfaces: Sequence[Interface], frames: Iterable[Frame]) -> bytes:
    """The file's bytes: the frames in their order."""
    header = struct.pack("<IHHq", BYTE_ORDER_MAGIC, 1, 0, UNKNOWN_LENGTH) + _options([(APPLICATION, b"scpslab")])
    blocks = [_block(SECTION_HEADER, header)]
    for interface in interfaces:
        description = struct.pack("<HHI", interface.link_type, 0, interface.snaplen)
        options = [(INTERFACE_NAME, interface.name.encode()), (TIME_RESOLUTION, NANOSECONDS)]
        blocks.append(_block(INTERFACE_DESCRIPTION, description + _options(options)))
    for frame in frames:
        sizes = (frame.interface, frame.t_ns >> 32, frame.t_ns & 0xFFFFFFFF, len(frame.content), frame.whole)
        packet = struct.pack("<IIIII", *sizes) + _padded(frame.content)
        blocks.append(
            _block(ENHANCED_PACKET, packet + (_options([(COMMENT, frame.comment.encode())]) if frame.comment else b""))
        )
    return b"".join(blocks)


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length


def _options(options: list[tuple[int, bytes]]) -> bytes:
    return b"".join(
        struct.pack("<HH", code, len(value)) + _padded(value) for code, value in [*options, (END_OF_OPTIONS, b"")]
    )


def _padded(value: bytes) -> bytes:
    """Blocks and options begin at multiples of four bytes."""
    return value + bytes(-len(value) % 4)
