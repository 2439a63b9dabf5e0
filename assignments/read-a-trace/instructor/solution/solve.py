"""The reference solution: `python3 solve.py CAPTURE LOSSES` prints causes.csv, and the counts after it.

CAPTURE is the pcap of ws1, LOSSES the output of `scpslab losses RUN --format csv`. Only the standard library is used,
as a student could.
"""

from __future__ import annotations

import csv
import struct
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ETHERNET, FILE_HEADER, RECORD_HEADER = 14, 24, 16
SENDER = bytes([10, 1, 0, 1])


def data_packets(content: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Frame, time in ns, sequence number and payload bytes of every TCP packet with data from ws1."""
    at, frame = FILE_HEADER, 0
    while at + RECORD_HEADER <= len(content):
        seconds, fraction, captured, _ = struct.unpack_from("<IIII", content, at)
        packet = content[at + RECORD_HEADER + ETHERNET : at + RECORD_HEADER + captured]
        at += RECORD_HEADER + captured
        frame += 1
        if packet[9] != 6 or packet[12:16] != SENDER:
            continue
        ip_header, length = (packet[0] & 15) * 4, int.from_bytes(packet[2:4], "big")
        payload = length - ip_header - (packet[ip_header + 12] >> 4) * 4
        if payload > 0:
            yield (
                frame,
                seconds * 10**9 + fraction,
                int.from_bytes(packet[ip_header + 4 : ip_header + 8], "big"),
                payload,
            )


def main(capture: Path, losses: Path) -> None:
    """Prints the causes and the counts."""
    with losses.open(newline="") as file:
        lost = {
            int(row["frame"]): row["cause"]
            for row in csv.DictReader(file)
            if row["direction"] == "forward" and row["frame"]
        }
    copies: dict[int, list[tuple[int, int]]] = {}
    causes: list[str] = []
    first_repair = None
    first_seq = None
    print("number,frame,seq,cause")
    for frame, t_ns, wire_seq, _ in data_packets(capture.read_bytes()):
        first_seq = wire_seq if first_seq is None else first_seq
        seq = (wire_seq - first_seq) % 2**32
        earlier = copies.setdefault(seq, [])
        if earlier:
            arrived = any(one not in lost for one, _ in earlier)
            causes.append("superfluous" if arrived else lost[earlier[-1][0]])
            first_repair = first_repair or (t_ns - earlier[0][1]) / 1e6
            print(f"{len(causes)},{frame},{seq},{causes[-1]}")
        earlier.append((frame, t_ns))
    print(f"resends {len(causes)}, {dict(Counter(causes))}, first repair {first_repair} ms", file=sys.stderr)


main(Path(sys.argv[1]), Path(sys.argv[2]))
