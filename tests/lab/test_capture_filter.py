"""Captures with a filter and without one: the programs that take them write the same bytes, and a filter that only
libpcap finds wrong is refused.
"""

from __future__ import annotations

import json

import pytest

from tests.lab.conftest import run_text

pytestmark = pytest.mark.lab
BAD = """
kind: scenario
version: 1
title: Bad filter
topology: point_to_point
workloads: [{kind: bulk, name: transfer, from: h1, to: h2, size: 1 kB}]
probes: [{kind: capture, node: h1, filter: tcp !udp}]
"""


def test_a_filter_that_is_none_is_named_before_anything_is_sent(tmp_path):
    result = run_text(tmp_path, BAD)
    (status,) = (json.loads(found.read_text()) for found in result.folder.glob("cells/*/status.json"))

    assert (status["status"], status["epoch_realtime_ns"]) == ("failed", None)
    assert status["reason"] == (
        'FilterError: probe h1: found the filter "tcp !udp" (syntax error); expected one of pcap-filter(7). '
        "Correct the filter."
    )


TWO_PROGRAMS = """
kind: scenario
version: 1
title: Two programs at one interface
topology: point_to_point
links: {{hop: {{data: {{errors: {{model: independent, ber: 1e-6}}}}}}}}
workloads: [{{kind: bulk, name: transfer, from: h1, to: h2, size: 300 kB}}]
script: [{{do: run, at: 1 s, node: h1, command: {command}}}]
probes:
  - {{kind: capture, name: without, node: h2, snaplen: {snaplen}}}
  - {{kind: capture, name: with, node: h2, snaplen: {snaplen}, filter: ip or not ip}}
"""
# A frame to everybody with a tag of 802.1Q, which the receiver's kernel takes out of the frame, and another without.
TAGGED, PLAIN = "ffffffffffff0202020202028100200588b5", "ffffffffffff02020202020288b5"
SEND = f"""import socket
for head in ("{TAGGED}", "{PLAIN}"):
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    link.bind((next(name for _, name in socket.if_nameindex() if name != "lo"), 0))
    link.send(bytes.fromhex(head) + bytes(50))
"""


@pytest.mark.parametrize("snaplen", ["54 B", "96 B"])
def test_a_capture_without_a_filter_has_the_bytes_of_tcpdump(tmp_path, snaplen):
    command = json.dumps(f"python3 -c '{SEND}'")
    result = run_text(tmp_path, TWO_PROGRAMS.format(snaplen=snaplen, command=command))
    (cell,) = result.folder.glob("cells/*")
    without, with_ = ((cell / "captures" / f"{name}.pcap").read_bytes() for name in ("without", "with"))
    logs = [(cell / "logs" / f"capture-{name}.log").read_text().partition(":")[0] for name in ("without", "with")]

    assert logs == ["labtool", "tcpdump"]
    assert len(without) > 300 * (16 + 10)
    assert snaplen != "96 B" or bytes.fromhex(TAGGED) in without
    assert without == with_
