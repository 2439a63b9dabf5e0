"""Programs that hand the kernel many packets in one piece: every packet passes the stages of a link by itself."""

from __future__ import annotations

import json
from ipaddress import ip_address

import numpy as np
import pytest

from scpslab.analysis.capture import read_packets
from scpslab.analysis.run import open_run
from tests.lab.conftest import run_text

pytestmark = pytest.mark.lab
RATE_BPS, MTU_BYTES = 2_000_000, 1500
# The clock moves a little while the guest's programs run, and a packet is captured when its kernel gets to it: 2
# permille of a packet's time.
CAPTURE_NS = 10_000
# SOL_UDP and UDP_SEGMENT: with each datagram that is sent (17, 103), then for the socket; the last packet of a piece is
# shorter.
SEND = """import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("10.0.0.2", 5000))
for _ in range(3):
    s.sendmsg([bytes(40 * 1000)], [(17, 103, struct.pack("=H", 1000))])
s.setsockopt(17, 103, 1200)
s.send(bytes(10 * 1200 + 7))
"""
DATAGRAMS, DATAGRAM_BYTES = 3 * 40 + 11, 3 * 40 * 1028 + 10 * 1228 + 35
# With TCP beside them, which cuts its segments itself where the device says so.
SCENARIO = """
kind: scenario
version: 1
title: Datagrams in one piece
topology: point_to_point
parameters: {data_rate: 2 Mbit/s, data_buffer: 1 MB}
workloads: [{kind: bulk, name: transfer, from: h1, to: h2, size: 300 kB, start: 20 s}]
script: [{do: run, at: 1 s, node: h1, command: COMMAND}]
probes: [{kind: capture, node: h2}]
"""


def test_no_two_arrivals_are_closer_than_the_second_s_time_on_the_wire(tmp_path):
    """Each datagram is counted, waits in the queue and takes its time on the wire; and no packet is longer than the
    MTU.
    """
    result = run_text(tmp_path, SCENARIO.replace("COMMAND", json.dumps(f"python3 -c '{SEND}'")))
    assert (result.completed, result.failed) == (1, 0)
    (found,) = open_run(result.folder).cells
    account = next(line for line in found.records("accounting") if line["direction"] == "data")
    packets = read_packets(found.folder / "captures" / "h2.pcap")
    sent = packets.source == int(ip_address("10.0.0.1"))
    sizes, times = packets.ip_bytes[sent], packets.t_ns[sent]
    datagrams = packets.protocol[sent] == 17

    assert (datagrams.sum(), sizes[datagrams].sum()) == (DATAGRAMS, DATAGRAM_BYTES)
    assert account["offered_packets"] == account["delivered_packets"] == len(sizes)
    assert account["offered_bytes"] == account["delivered_bytes"] == sizes.sum()
    assert account["most_packets"] >= DATAGRAMS - 1
    assert sizes.max() <= MTU_BYTES
    wire_ns = sizes * 8 * 10**9 // RATE_BPS
    assert (np.diff(times) >= wire_ns[1:] - CAPTURE_NS).all()
    assert abs(np.ptp(times[datagrams]) - wire_ns[datagrams][1:].sum()) < CAPTURE_NS
