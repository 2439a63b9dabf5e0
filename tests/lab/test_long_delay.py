"""A delay longer than the time that a cell gives its last packets otherwise."""

from __future__ import annotations

import json

import pytest

from scpslab.running import RunOptions, run_scenario

pytestmark = pytest.mark.lab
SCENARIO = """
kind: scenario
version: 1
title: Eight minutes each way
topology: point_to_point
parameters: {data_delay: 8 min, ack_delay: 8 min, data_buffer: 1 MB, ack_buffer: 1 MB}
workloads:
- {kind: bulk, name: transfer, from: h1, to: h2, size: 10 kB, patience: 300 s}
limits: {virtual: 4000 s}
"""


def test_a_transfer_that_cannot_end_in_time_is_incomplete_and_the_accounts_close(tmp_path):
    (tmp_path / "far.yaml").write_text(SCENARIO)
    result = run_scenario(str(tmp_path / "far.yaml"), RunOptions(out=tmp_path / "runs", jobs=1, use_cache=False))
    (status,) = (json.loads(found.read_text()) for found in result.folder.glob("cells/*/status.json"))
    (accounting,) = result.folder.glob("cells/*/records/accounting.jsonl")

    assert status["status"] == "incomplete", status
    assert all(json.loads(line)["closes"] for line in accounting.read_text().splitlines())
