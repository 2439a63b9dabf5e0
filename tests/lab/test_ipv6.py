"""Networks with addresses of IPv6: every kind of traffic crosses them, and nothing else does."""

import pytest

from scpslab.analysis.lost_packets import find_losses
from scpslab.measure.packets import Packets, read
from tests.lab.ran import Cell

TCP, UDP, ICMPV6, ETHERTYPE = 6, 17, 58, 0x86DD
CLIENT, SERVER = "fd00::a01:1", "fd00::a02:1"
ALL_KINDS = """
topology: gateway
addresses: ipv6
links:
  hop:
    forward: {errors: {ber: 1.0e-6}, profile: {steps: [{at: 0 s, rate: 10 Mbit/s}, {at: 4 s, rate: 2 Mbit/s}]}}
    return: {errors: {ber: 1.0e-6}}
workloads:
  - {kind: bulk, name: bulk, from: client, to: server, size: 300 kB}
  - {kind: ftp, name: passive, from: client, to: server, size: 50 kB, command: put, mode: passive}
  - {kind: ftp, name: active, from: server, to: client, size: 50 kB, command: get, mode: active, port: 2121}
  - {kind: iperf3, name: datagrams, from: client, to: server, duration: 2 s, udp_rate: 200 kbit/s}
  - {kind: iperf3, name: back, from: server, to: client, duration: 2 s, port: 5300}
  - {kind: ping, name: echo, from: client, to: server, count: 5, interval: 200 ms, payload: 100 B}
  - {kind: background, name: load, from: client, to: server, max_rate: 100 kbit/s}
  - {kind: program, name: web, from: client, to: server, size: 50 kB, server_at: from, ready_port: 4433, timeout: 60 s,
     server: "exec python3 -m http.server --bind :: {port}", client: "exec curl -sS -o {out} http://[{server}]:{port}/file.bin"}
probes:
  - {kind: capture, node: server}
  - {kind: tcp_info, node: client, interval: 100 ms}
events:
  - {at: 1 s, node: client, timeout: 60 s, command: "ping -c 2 -s 300 server"}
"""
PORTS = {5001: "bulk", 21: "passive", 2121: "active", 5201: "datagrams", 5300: "back", 4433: "web", 5002: "load"}


@pytest.fixture(scope="module")
def kinds(run_once) -> Cell:
    """A cell with every kind of traffic."""
    return run_once(ALL_KINDS).cell.completed


def rows(packets: Packets):
    """Each packet's flow and payload."""
    return zip((packets.flows[flow] for flow in packets.flow), packets.payload.tolist(), strict=True)


def test_every_packet_is_of_ipv6_and_has_its_owner(kinds):
    found = set()
    for packets in read(kinds.packets_file):
        for flow, payload in rows(packets):
            assert flow.type_ == ETHERTYPE
            assert {flow.from_ip, flow.to_ip} == {CLIENT, SERVER}
            ports = {flow.from_port, flow.to_port}
            if flow.protocol == ICMPV6:
                expected = {108: "echo", 308: "lab"}[payload]
            else:
                named = (owner for port, owner in PORTS.items() if port in ports)
                expected = next(named, "active" if 20 in ports or 2120 in ports else "passive")
            assert flow.owner in {expected, *({"active", "passive"} if expected == "passive" else ())}
            found.add(flow.owner)
    assert found == {*PORTS.values(), "echo", "lab"}


def test_the_states_of_tcp_and_its_samples_name_both_ends(kinds):
    ends = {(one.local, one.remote) for one in kinds.states}
    (probe,) = (one.name for one in kinds.plan.cell.probes if one.sampled_node)
    sampled = {(line["local"], line["remote"]) for line in kinds.records(probe)}

    assert any(remote == f"[{SERVER}]:5001" for _, remote in ends)
    assert any(local == f"[{SERVER}]:5001" for local, _ in ends)
    assert any(remote == f"[{SERVER}]:5001" for _, remote in sampled)


def test_a_capture_has_the_frames_of_losses(kinds):
    lost = find_losses(kinds, "").lost
    seen = kinds.packets("server")

    assert len(seen.t_ns)
    assert {one.protocol for one in lost} <= {"tcp", "udp", "icmpv6"}
    assert all(one.source.startswith("[fd00::") for one in lost if one.protocol == "tcp")


def test_the_columns_are_those_of_ipv4_and_the_bytes_the_same_twice(run):
    scenario = """
topology: point_to_point
workloads:
  - {kind: bulk, name: transfer, from: h1, to: h2, size: 200 kB}
"""
    four, six, again = (run(scenario, f"addresses={family}") for family in ("ipv4", "ipv6", "ipv6"))

    assert {name for name, value in four.row.items() if value} == {name for name, value in six.row.items() if value}
    # Twenty bytes a packet more.
    assert float(four.row["transfer_s"]) < float(six.row["transfer_s"]) < 1.05 * float(four.row["transfer_s"])
    assert again.digests == six.digests


def test_routes_that_follow_contacts_are_of_ipv6(run):
    cell = run(
        """
topology: gateway
addresses: ipv6
routing: contacts
links: {hop: {forward: {profile: {steps: [{at: 0 s, state: up}, {at: 3 s, state: down}, {at: 5 s, state: up}], when_down: hold}}}}
workloads:
  - {kind: bulk, name: transfer, from: client, to: server, size: 2 MB}
"""
    ).cell.completed

    assert cell.line("transfer", event="receiver")["bytes"] == 2_000_000
