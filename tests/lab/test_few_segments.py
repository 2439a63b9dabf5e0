"""Transfers of a few segments: a time always, and a rate only where it is one."""

from __future__ import annotations

import csv

import pytest

from tests.lab.conftest import run_text

pytestmark = pytest.mark.lab

SIZES = """
kind: scenario
version: 1
title: Files of one, two, fifteen and seventy segments
topology: point_to_point
parameters: {data_delay: 1 ms, ack_delay: 1 ms}
workloads:
  - {kind: bulk, name: transfer, from: h1, to: h2, size: 1 kB}
probes:
  - {kind: capture, node: h2}
sweep:
  size: {set: [workloads.transfer.size], values: [1 kB, 1448 B, 20 kB, 100 kB]}
"""


def test_no_goodput_is_above_the_link_s_rate(tmp_path):
    with (run_text(tmp_path, SIZES).folder / "results.csv").open(newline="") as file:
        rows = {row["size"]: row for row in csv.DictReader(file)}
    assert all(float(row["transfer_s"]) > 0 for row in rows.values())
    assert [size for size, row in rows.items() if row["goodput_bps"]] == ["100 kB"]
    assert 0.9 < float(rows["100 kB"]["utilization"]) < 1
