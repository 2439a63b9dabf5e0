"""Switches of planned networks know every address; a host gets no packet of others."""

import pytest

from scpslab.measure.packets import read

# Three hosts at a switch, and two at another one behind it.
LAN = """\
from scpslab.topology import Direction, Network, Parameters, Queue

PARAMETERS = Parameters()


def describe(p):
    net = Network("lan")
    net.switch("s1")
    net.switch("s2")
    there, back = (Direction(name, 10_000_000, 0, Queue(limit_bytes=30_000), 0) for name in ("up", "down"))
    for number in range(1, 6):
        net.host(f"h{number}")
        switch = "s1" if number < 4 else "s2"
        net.link(f"h{number}", switch, name=f"l{number}", a_ip=f"10.0.0.{number}/24", forward=there, reverse=back)
    net.link("s1", "s2", name="trunk", forward=there, reverse=back)
    return net
"""
TRAFFIC = """\
topology: ./lan.py
workloads:
  - {kind: bulk, name: near, from: h1, to: h3, size: 200 kB}
  - {kind: bulk, name: far, from: h4, to: h1, size: 200 kB, port: 5002}
  - {kind: ping, name: echo, from: h2, to: h5, count: 3, interval: 200 ms}
packets: true
"""


@pytest.fixture(scope="module")
def cell(run_once):
    (run_once.folder / "lan.py").write_text(LAN)
    return run_once(TRAFFIC).cell.completed


def test_no_host_is_offered_a_packet_of_others(cell):
    down = {one.link: one for one in read(cell.packets_file) if one.direction == "down" and one.link != "trunk"}
    got = {link: {packets.flows[flow].to_ip for flow in set(packets.flow.tolist())} for link, packets in down.items()}
    assert got == {f"l{number}": {f"10.0.0.{number}"} for number in range(1, 6)}


def test_between_the_switches_pass_packets_for_the_other_side_only(cell):
    trunk = {one.direction: one for one in read(cell.packets_file) if one.link == "trunk"}
    got = {way: {packets.flows[flow].to_ip for flow in set(packets.flow.tolist())} for way, packets in trunk.items()}
    assert got == {"up": {"10.0.0.4", "10.0.0.5"}, "down": {"10.0.0.1", "10.0.0.2"}}
