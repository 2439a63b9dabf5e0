"""A capture written again as pcapng, with comments on frames, which Wireshark shows in its packet list and packet
details.

Source: the pcapng file format (draft-ietf-opsawg-pcapng), sections 3.5 (options), 4.1 (section header), 4.2 (interface
description) and 4.3 (enhanced packet).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from scpslab.analysis.capture import Records

SECTION_HEADER, INTERFACE_DESCRIPTION, ENHANCED_PACKET = 0x0A0D0D0A, 1, 6
BYTE_ORDER_MAGIC = 0x1A2B3C4D
UNKNOWN_LENGTH = -1
END_OF_OPTIONS, COMMENT, INTERFACE_NAME, TIME_RESOLUTION, APPLICATION = 0, 1, 2, 9, 4
NANOSECONDS = bytes([9])  # a power of ten: 10^-9 s


def annotated(records: Records, interface: str, comments: Mapping[int, str]) -> bytes:
    """The file's bytes: every record as it was, in its order, with the comments of the frames (counted from 1) that
    have one.
    """
    header = struct.pack("<IHHq", BYTE_ORDER_MAGIC, 1, 0, UNKNOWN_LENGTH) + _options([(APPLICATION, b"scpslab")])
    description = struct.pack("<HHI", records.link_type, 0, records.snaplen)
    blocks = [
        _block(SECTION_HEADER, header),
        _block(
            INTERFACE_DESCRIPTION,
            description + _options([(INTERFACE_NAME, interface.encode()), (TIME_RESOLUTION, NANOSECONDS)]),
        ),
    ]
    rows = zip(
        records.t_ns.tolist(), records.start.tolist(), records.captured.tolist(), records.whole.tolist(), strict=True
    )
    for frame, (t_ns, start, captured, whole) in enumerate(rows, start=1):
        packet = struct.pack("<IIIII", 0, t_ns >> 32, t_ns & 0xFFFFFFFF, captured, whole) + _padded(
            records.content[start : start + captured]
        )
        said = comments.get(frame)
        blocks.append(_block(ENHANCED_PACKET, packet + (_options([(COMMENT, said.encode())]) if said else b"")))
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
