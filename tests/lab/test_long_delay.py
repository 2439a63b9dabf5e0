"""A delay longer than the time that a cell gives its last packets otherwise."""

from __future__ import annotations

import json

import pytest

from tests.lab.conftest import run_text

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
    result = run_text(tmp_path, SCENARIO)
    (status,) = (json.loads(found.read_text()) for found in result.folder.glob("cells/*/status.json"))
    (accounting,) = result.folder.glob("cells/*/records/accounting.jsonl")

    assert status["status"] == "incomplete", status
    assert all(json.loads(line)["closes"] for line in accounting.read_text().splitlines())
