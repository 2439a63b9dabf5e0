"""Rates that change while packets wait: each packet leaves when the integral of the rate says so, to the nanosecond.

A cell is completed only if the auditor, which computes the same times by itself, explains every packet.
"""

import json
import random
import shlex

import numpy as np

from scpslab.measure.packets import NEVER, read
from scpslab.runs import CellFiles

LINK = """
topology: point_to_point
links: {hop: {forward: {rate: 10 Mbit/s, delay: 5 ms, queue: {limit: 1.25 MB}}, return: {rate: 10 Mbit/s, delay: 5 ms}}}
packets: true
seed: 1
"""
STANDING = f"""{LINK}
workloads: [{{kind: iperf3, name: u, from: h1, to: h2, udp_rate: 12 Mbit/s, duration: 10 s, segment: 1000 B}}]
events:
  - {{at: 4 s, link: hop, direction: forward, rate: 1 Mbit/s}}
  - {{at: 6 s, link: hop, direction: forward, rate: 100 Mbit/s}}
"""
# Sockets that fq treats in a way of its own: control priority passes its horizon by, and a program may say when a
# packet is to leave (SO_PRIORITY 12, SO_TXTIME 61 with SCM_TXTIME, linux/net_tstamp.h).
SENDER = """import socket, struct, time
time.sleep(1)
urgent, timed = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
urgent.setsockopt(socket.SOL_SOCKET, 12, 7)
timed.setsockopt(socket.SOL_SOCKET, 61, struct.pack("iI", time.CLOCK_MONOTONIC, 0))
for number in range(500):
    at = time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 100_000_000
    urgent.sendto(bytes(100), ("10.0.0.2", 9))
    timed.sendmsg([bytes(700)], [(socket.SOL_SOCKET, 61, struct.pack("q", at))], 0, ("10.0.0.2", 9))
    time.sleep(0.01)
time.sleep(1e6)
"""
MANY = f"""{LINK}
hosts: {{h1: {{congestion_control: bbr}}}}
services:
  - {{kind: command, name: sockets, node: h1, command: {json.dumps("python3 -c " + shlex.quote(SENDER))}}}
workloads:
  - {{kind: bulk, name: a, from: h1, to: h2, size: 2 MB}}
  - {{kind: bulk, name: b, from: h1, to: h2, size: 2 MB, port: 5002}}
  - {{kind: iperf3, name: u, from: h1, to: h2, udp_rate: 10 Mbit/s, duration: 8 s, segment: 1000 B}}
  - {{kind: ping, name: p, from: h1, to: h2, count: 100, interval: 50 ms, required: false}}
"""


def forward(cell):
    """The packets of the hop's forward direction."""
    packets, _ = read(CellFiles(cell.folder).packets)
    return packets


def arrived_bits(packets, start_s, end_s):
    times = packets.arrived_ns[packets.arrived_ns != NEVER]
    sizes = packets.wire_bytes[packets.arrived_ns != NEVER] * 8
    return int(sizes[(times >= start_s * 1e9) & (times < end_s * 1e9)].sum())


def test_a_change_of_rate_acts_on_what_waits(run):
    """A standing queue at 10, then 1, then 100 Mbit/s: what arrives is each rate, but for a packet."""
    packets = forward(run(STANDING).cell.completed)

    for start_s, end_s, rate_bps in ((3, 4, 10e6), (4.005, 6.005, 1e6), (6.005, 6.05, 100e6)):
        assert abs(arrived_bits(packets, start_s, end_s) - rate_bps * (end_s - start_s)) <= 2 * 8 * 1028


def test_two_thousand_rates_move_every_packet_as_their_integral_says(run):
    """Whatever sends: two connections that pace themselves, datagrams, ping, control priority, times of a program's."""
    draw = random.Random(7)
    rates = [(number * 5_000_000, draw.randrange(250_000, 3_750_000) * 8) for number in range(1, 2_001)]
    events = "".join(
        f"  - {{at: {t_ns} ns, link: hop, direction: forward, rate: {rate_bps} bit/s}}\n" for t_ns, rate_bps in rates
    )
    packets = forward(run(f"{MANY}events:\n{events}").cell.completed)

    left, due = packets.left_ns[packets.left_ns != NEVER], packets.due_ns[packets.left_ns != NEVER]
    assert len(left) > 10_000
    assert (np.diff(left) >= 0).all()
    assert ((left - due >= 0) & (left - due < 10_000)).all()
