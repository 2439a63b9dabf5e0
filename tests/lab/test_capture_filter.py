"""A filter that only libpcap finds wrong is refused before the epoch of its cell."""

from __future__ import annotations

import json

import pytest

from tests.lab.conftest import run_text

pytestmark = pytest.mark.lab
SCENARIO = """
kind: scenario
version: 1
title: Bad filter
topology: point_to_point
workloads: [{kind: bulk, name: transfer, from: h1, to: h2, size: 1 kB}]
probes: [{kind: capture, node: h1, filter: tcp !udp}]
"""


def test_a_filter_that_is_none_is_named_before_anything_is_sent(tmp_path):
    result = run_text(tmp_path, SCENARIO)
    (status,) = (json.loads(found.read_text()) for found in result.folder.glob("cells/*/status.json"))

    assert (status["status"], status["epoch_realtime_ns"]) == ("failed", None)
    assert status["reason"] == ('FilterError: probe h1: found the filter "tcp !udp" (syntax error); expected one of pcap-filter(7). Correct the filter.')
