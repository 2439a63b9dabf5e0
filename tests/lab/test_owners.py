"""Whose packets are: in composed cells every packet has its owner, on every hop.

The tests know it by other facts than the lab: by ports that only one of them uses, by lengths, and by directions.
"""

import numpy as np

from scpslab.measure.packets import Flow, Packets, read
from tests.lab.ran import Cell

TCP, UDP, ICMP = 6, 17, 1
SPLIT = """
topology: gateway
services:
  - {kind: gateway, name: near, node: g1, peer: 10.9.0.2, far: [10.2.0.0/24], rate: 9900 kbit/s}
  - {kind: gateway, name: far, node: g2, peer: 10.9.0.1, far: [10.1.0.0/24], rate: 990 kbit/s, buffer: 1300 kB}
  - {kind: command, name: web, node: server, command: python3 -m http.server 8080, ready_port: 8080}
workloads:
  - {kind: bulk, name: bulk, from: client, to: server, size: 100 kB}
  - {kind: ftp, name: passive, from: client, to: server, size: 50 kB, command: put, mode: passive}
  - {kind: ftp, name: active, from: server, to: client, size: 50 kB, command: get, mode: active, port: 2121}
  - {kind: iperf3, name: datagrams, from: client, to: server, duration: 2 s, udp_rate: 200 kbit/s}
  - {kind: iperf3, name: back, from: server, to: client, duration: 2 s, port: 5300}
  - {kind: ping, name: short, from: client, to: server, count: 5, interval: 200 ms, payload: 100 B}
  - {kind: ping, name: long, from: client, to: server, count: 5, interval: 300 ms, payload: 2000 B}
events:
  - {at: 1 s, node: client, timeout: 60 s, command: "curl --silent http://server:8080/"}
  - {at: 1 s, node: client, timeout: 60 s, command: "ping -c 2 -s 300 server"}
"""
# SCPS-TP with addresses of its programs' own, through the gateways of its hosts, and congestion.
SCPS = """
topology: fy97
hosts: {ws1: {stack: scps, preset: modern}, ws2: {stack: scps, preset: modern}}
workloads:
  - {kind: bulk, name: bulk, from: ws1, to: ws2, size: 100 kB}
  - {kind: bulk, name: second, from: ws2, to: ws1, size: 100 kB, port: 5003}
  - {kind: fp, name: file, from: ws1, to: ws2, size: 50 kB, command: put}
  - {kind: iperf3, name: flow, from: ws1, to: ws2, duration: 2 s}
  - {kind: ping, name: short, from: ws1, to: ws2, count: 5, interval: 200 ms}
  - {kind: background, name: congestion, from: ws3, to: ws2, max_rate: 500 kbit/s}
"""
SERVER = "10.2.0.1"
LENGTHS = {108: "short", 308: "lab", 2008: "long"}
PORTS = {5001: "bulk", 21: "passive", 2121: "active", 20: "active", 5201: "datagrams", 5300: "back"}
SCPS_PORTS = {5001: "bulk", 5003: "second", 5201: "flow"}


def of_split(packets: Packets, flow: Flow, payload: int) -> str:
    """Whose a packet is: between the gateways theirs, on the LANs that of the program that has the connection."""
    if packets.link == "hop":
        return {"forward": "near", "return": "far"}[packets.direction]
    if flow.protocol == ICMP:
        # The rest of a long packet is in a fragment of its own.
        return LENGTHS.get(payload, "long")
    ports = {flow.from_port, flow.to_port}
    if 8080 in ports:
        return "web" if flow.from_ip == SERVER else "lab"
    # Only passive FTP has ports that nobody names.
    return next((owner for port, owner in PORTS.items() if port in ports), "passive")


def of_scps(_packets: Packets, flow: Flow, _payload: int) -> str:
    """Whose a packet is, by its ports: SCPS-FP has what nobody else has."""
    if flow.protocol != TCP:
        return {UDP: "congestion", ICMP: "short"}[flow.protocol]
    ports = {flow.from_port, flow.to_port}
    return next((owner for port, owner in SCPS_PORTS.items() if port in ports), "file")


def has_right_owners(cell: Cell, owner_of) -> set[str]:
    """Holds every packet, and the bytes of each direction, against the owners; returns these."""
    found = set()
    for packets in read(cell.packets_file):
        rows = zip(packets.flow.tolist(), packets.payload.tolist(), strict=True)
        expected = [owner_of(packets, packets.flows[flow], payload) for flow, payload in rows]
        owners = [packets.flows[flow].owner for flow in packets.flow]
        rows = zip(expected, owners, packets.flow, strict=True)
        assert {(right, packets.flows[flow]) for right, owner, flow in rows if owner != right} == set()
        bytes_ = {name: int(packets.wire_bytes[np.array(owners) == name].sum()) for name in set(owners)}
        account = cell.line("accounting", link=packets.link, direction=packets.direction)
        assert sum(bytes_.values()) == account["offered_bytes"]
        found |= set(owners)
    return found


def test_every_packet_of_a_split_path_has_its_owner(run):
    found = has_right_owners(run(SPLIT).cell.completed, of_split)

    assert found == {*PORTS.values(), "short", "long", "lab", "web", "near", "far"}


def test_every_packet_of_scps_programs_has_its_owner(run):
    found = has_right_owners(run(SCPS).cell.completed, of_scps)

    assert found == {"bulk", "second", "file", "flow", "short", "congestion"}


def test_workloads_of_every_kind_may_begin_at_one_instant(run):
    """The first packet of a way waits at the switch until its daemon has its turn among the programs that begin."""
    cell = run(
        """
topology: point_to_point
seed: 7
workloads:
  - {kind: bulk, name: big, from: h1, to: h2, size: 100 kB}
  - {kind: bulk, name: back, from: h2, to: h1, size: 100 kB, port: 5002}
  - {kind: ping, name: echo, from: h2, to: h1, count: 3, interval: 500 ms}
  - {kind: iperf3, name: flood, from: h1, to: h2, duration: 2 s, udp_rate: 3 Mbit/s}
  - {kind: ftp, name: file, from: h2, to: h1, size: 30 kB}
  - {kind: mix, name: many, from: h1, to: h2, per_second: 2, number: 2, sizes: {20 kB: 1, 100 kB: 1}}
"""
    ).cell.completed
    packets = next(one for one in read(cell.packets_file) if (one.link, one.direction) == ("hop", "return"))

    assert packets.arrived_ns[0] - packets.left_ns[0] > cell.record.planned["hop", "return"].delay_ns
