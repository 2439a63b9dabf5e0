"""What hosts send over a hop: options of routes, few segments, long delays, many packets in one piece."""

import json
from ipaddress import ip_address

import numpy as np
import pytest

CONNECTED = """
hosts:
  h1: {initial_window: 3, initial_receive_window: 7, rto_min: 1500 ms}
  h2: {mss: 600 B, quick_ack: true}
workloads:
- {kind: bulk, name: transfer, from: h1, to: h2, size: 50 kB}
events:
- {at: 0.5 s, node: h1, command: ip route show}
- {at: 0.5 s, node: h2, command: ip route show}
- {at: 3 s, node: h1, command: "ss -tin dst 10.0.0.2"}
probes:
- {kind: capture, node: h1}
"""


@pytest.fixture(scope="module")
def connected(run_once):
    """A cell without routers: the route to the subnet carries what hosts ask of their routes."""
    return run_once(CONNECTED).cell


def test_the_kernel_lists_the_route_with_its_options(connected):
    first, second = connected.log("events-1-h1").strip(), connected.log("events-2-h2").strip()

    of_the_kernel = "proto kernel scope link src"
    options = "initcwnd 3 rto_min lock 1.5s initrwnd 7"
    assert connected.status == "completed"
    assert first == f"10.0.0.0/30 dev h1-hop {of_the_kernel} 10.0.0.1 {options}"
    assert second == f"10.0.0.0/30 dev h2-hop {of_the_kernel} 10.0.0.2 advmss 600 quickack 1"


def test_a_connection_obeys_them(connected):
    """Three segments of at most 600 bytes before the first answer to data, and a timeout of at least 1.5 s."""
    packets = connected.packets("h1")
    sent = packets.payload_bytes > 0
    answered = (packets.payload_bytes == 0) & (packets.t_ns > packets.t_ns[sent][0])

    assert int((sent & (packets.t_ns < packets.t_ns[answered][0])).sum()) == 3
    assert int(packets.payload_bytes.max()) <= 600
    assert float(connected.log("events-3-h1").split(" rto:")[1].split()[0]) >= 1500


SIZES = """
links: {hop: {forward: {delay: 1 ms}, return: {delay: 1 ms}}}
workloads:
  - {kind: bulk, name: transfer, from: h1, to: h2, size: 1 kB}
probes:
  - {kind: capture, node: h2}
sweep:
  size: {set: [workloads.transfer.size], values: [1 kB, 1448 B, 20 kB, 100 kB]}
"""


def test_no_goodput_is_above_the_link_s_rate(run):
    """Of one, two, fifteen and seventy segments: a time always, and a rate only where it is one."""
    rows = {row["size"]: row for row in run(SIZES).rows}
    assert all(float(row["transfer_s"]) >= 0 for row in rows.values())
    assert [size for size, row in rows.items() if row["goodput_bps"]] == ["100 kB"]
    assert 0.9 < float(rows["100 kB"]["utilization"]) < 1


EIGHT_MINUTES = """
links:
  hop:
    forward: {delay: 8 min, queue: {limit: 1 MB}}
    return: {delay: 8 min, queue: {limit: 1 MB}}
workloads:
- {kind: bulk, name: transfer, from: h1, to: h2, size: 10 kB, timeout: 300 s}
limits: {lab_time: 4000 s}
"""


def test_a_transfer_that_cannot_end_in_time_is_incomplete_and_the_accounts_close(run):
    """The delay is longer than the time that a cell gives its last packets otherwise."""
    cell = run(EIGHT_MINUTES).cell

    assert cell.status == "incomplete", cell.reason
    assert all(line["closes"] for line in cell.records("accounting"))


RATE_BPS, MTU_BYTES = 2_000_000, 1500
# The clock moves a little while the guest's programs run, and a packet is captured when its kernel gets to it: 2
# permille of a packet's time.
CAPTURE_NS = 10_000
# SOL_UDP and UDP_SEGMENT: with each datagram that is sent (17, 103), then for the socket; the last packet of a piece is
# shorter.
TWO_OF_A_PORT = """
topology: star
parameters: {terminals: 2}
hosts: {t1: {send_buffer: 10 kB}}
workloads:
  - {kind: bulk, name: small, from: t1, to: server, size: 50 kB, port: 5001, segment: 512 B}
  - {kind: bulk, name: large, from: server, to: t2, size: 100 kB, port: 5001, segment: 512 B}
probes: [{kind: tcp_info, node: server}, {kind: tcp_info, node: t1}]
"""


def test_the_send_buffer_of_one_host_is_not_that_of_another_s_transfer_to_the_same_port(run):
    cell = run(TWO_OF_A_PORT).cell.completed
    windows = {line["local"]: line["cwnd_segments"] for line in cell.records("tcp-t1")}
    others = [line["cwnd_segments"] for line in cell.records("tcp-server") if line["remote"] == "10.1.2.1:5001"]
    assert max(windows.values()) <= 10_000 // 512 < max(others)


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
PIECES = """
links: {hop: {forward: {rate: 2 Mbit/s, queue: {limit: 1 MB}}}}
workloads: [{kind: bulk, name: transfer, from: h1, to: h2, size: 300 kB, start: 20 s}]
events: [{at: 1 s, node: h1, command: COMMAND}]
probes: [{kind: capture, node: h2}]
"""


def test_no_two_arrivals_are_closer_than_the_second_s_time_on_the_wire(run):
    """Each packet of a piece is counted, waits, takes its time on the wire, and is no longer than the MTU."""
    cell = run(PIECES.replace("COMMAND", json.dumps(f"python3 -c '{SEND}'"))).cell.completed
    account, packets = cell.account(), cell.packets("h2")
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
