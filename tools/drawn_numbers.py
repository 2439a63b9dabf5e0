"""Captures and records without the numbers that a kernel draws: ports, first sequence numbers, time stamps and IP
identifications.

A kernel's random numbers depend on everything that happened since it started, so a lab program that reads one file more
gives other ports. What a network does does not depend on them: two captures that are equal here have the same packets
at the same times.
"""

import re
import struct

PCAP_HEADER, RECORD_HEADER, ETHERNET = 24, 16, 14
IPV4, TCP, UDP = 0x0800, 6, 17
FIRST_DRAWN_PORT = 32_768
PORT = re.compile(rb"(?<![\d.])(3276[89]|327[7-9]\d|32[89]\d\d|3[3-9]\d{3}|[45]\d{4}|60\d{3})(?![\d.])")
TIMESTAMPS, SACK, NOP, END = 8, 5, 1, 0


def without_drawn_numbers(name: str, content: bytes) -> bytes:
    """The content of a capture or record in which every drawn number is replaced by its place in the order of
    appearance, or by 0.
    """
    if name.endswith(".pcap"):
        return _capture(content)
    seen: dict[bytes, bytes] = {}
    return PORT.sub(lambda found: seen.setdefault(found[0], b"port %d" % len(seen)), content)


def _capture(content: bytes) -> bytes:
    flows = _Flows()
    at, parts = PCAP_HEADER, [content[:PCAP_HEADER]]
    while at < len(content):
        kept = struct.unpack_from("<I", content, at + 8)[0]
        parts += [
            content[at : at + RECORD_HEADER],
            flows.packet(content[at + RECORD_HEADER : at + RECORD_HEADER + kept]),
        ]
        at += RECORD_HEADER + kept
    return b"".join(parts)


class _Flows:
    """The first numbers of every flow that was seen."""

    def __init__(self) -> None:
        self._ports: dict[int, int] = {}
        self._first: dict[tuple[object, ...], int] = {}

    def packet(self, data: bytes) -> bytes:
        """A packet with its numbers relative to the first of its flow; checksums follow from the rest, and payloads may
        name ports.
        """
        if len(data) < ETHERNET + 20 or struct.unpack_from("!H", data, 12)[0] != IPV4:
            return data
        packet = bytearray(data)
        header = ETHERNET + (packet[ETHERNET] & 15) * 4
        packet[ETHERNET + 4 : ETHERNET + 6] = packet[ETHERNET + 10 : ETHERNET + 12] = b"\0\0"
        ends = (bytes(data[ETHERNET + 12 : ETHERNET + 16]), bytes(data[ETHERNET + 16 : ETHERNET + 20]))
        protocol = data[ETHERNET + 9]
        if protocol == TCP and len(data) >= header + 20:
            return self._tcp(packet, header, ends)
        if protocol == UDP and len(data) >= header + 8:
            self._replace_ports(packet, header)
            packet[header + 6 : header + 8] = b"\0\0"
        return bytes(packet)

    def _tcp(self, packet: bytearray, at: int, ends: tuple[bytes, bytes]) -> bytes:
        ports = struct.unpack_from("!HH", packet, at)
        here, there = (ends[0], ports[0], ends[1], ports[1]), (ends[1], ports[1], ends[0], ports[0])
        self._replace_ports(packet, at)
        self._relative(packet, at + 4, ("seq", here))
        if packet[at + 13] & 16:
            self._relative(packet, at + 8, ("seq", there))
        packet[at + 16 : at + 18] = b"\0\0"
        end = at + (packet[at + 12] >> 4) * 4
        option = at + 20
        while option < min(end, len(packet)) - 1 and packet[option] != END:
            if packet[option] == NOP:
                option += 1
                continue
            kind, length = packet[option], max(packet[option + 1], 2)
            if kind == TIMESTAMPS:
                # They count from the start of whoever sends, which is before the epoch.
                packet[option + 2 : option + 10] = b"\0" * len(packet[option + 2 : option + 10])
            if kind == SACK:
                for edge in range(option + 2, min(option + length, len(packet) - 3), 4):
                    self._relative(packet, edge, ("seq", there))
            option += length
        return bytes(packet[:end]) + b"\0" * max(0, len(packet) - end)

    def _replace_ports(self, packet: bytearray, at: int) -> None:
        for place in (at, at + 2):
            port = struct.unpack_from("!H", packet, place)[0]
            if port >= FIRST_DRAWN_PORT:
                struct.pack_into("!H", packet, place, FIRST_DRAWN_PORT + self._ports.setdefault(port, len(self._ports)))

    def _relative(self, packet: bytearray, at: int, key: tuple[object, ...]) -> None:
        number = struct.unpack_from("!I", packet, at)[0]
        struct.pack_into("!I", packet, at, (number - self._first.setdefault(key, number)) % 2**32)
