"""Settings that the kernel keeps with routes hold on a hop without routers: the route to its subnet carries them."""

from __future__ import annotations

import pytest

from scpslab.analysis.capture import read_packets
from tests.lab.conftest import run_text

pytestmark = pytest.mark.lab
SCENARIO = """
kind: scenario
version: 1
title: Options of connected routes
topology: point_to_point
hosts:
  h1: {initial_window: 3, initial_receive_window: 7, rto_min: 1500 ms}
  h2: {mss: 600 B, quick_ack: true}
workloads:
- {kind: bulk, name: transfer, from: h1, to: h2, size: 50 kB}
script:
- {do: run, at: 0.5 s, node: h1, command: ip route show}
- {do: run, at: 0.5 s, node: h2, command: ip route show}
- {do: run, at: 3 s, node: h1, command: "ss -tin dst 10.0.0.2"}
probes:
- {kind: capture, node: h1}
"""


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    """The folder of the one cell."""
    result = run_text(tmp_path_factory.mktemp("connected"), SCENARIO)
    assert (result.completed, result.failed) == (1, 0)
    return next((result.folder / "cells").iterdir())


def test_the_kernel_lists_the_route_with_its_options(cell):
    first, second = (
        (cell / "logs" / f"script-{number}-{node}.log").read_text() for number, node in ((1, "h1"), (2, "h2"))
    )

    assert (
        first.strip()
        == "10.0.0.0/30 dev h1-hop proto kernel scope link src 10.0.0.1 initcwnd 3 rto_min lock 1.5s initrwnd 7"
    )
    assert second.strip() == "10.0.0.0/30 dev h2-hop proto kernel scope link src 10.0.0.2 advmss 600 quickack 1"


def test_a_connection_obeys_them(cell):
    """Three segments of at most 600 bytes leave before the first acknowledgement of data, and the timeout is at least
    1.5 s.
    """
    packets = read_packets(cell / "captures" / "h1.pcap")
    sent = packets.payload_bytes > 0
    answered = (packets.payload_bytes == 0) & (packets.t_ns > packets.t_ns[sent][0])

    assert int((sent & (packets.t_ns < packets.t_ns[answered][0])).sum()) == 3
    assert int(packets.payload_bytes.max()) <= 600
    retransmission_timeout_ms = float((cell / "logs" / "script-3-h1.log").read_text().split(" rto:")[1].split()[0])
    assert retransmission_timeout_ms >= 1500
