"""The file protocol's columns from records: times, restarts, and what became of every byte."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from scpslab import plan as plans
from scpslab import scenario
from scpslab.analysis.collect import measure
from scpslab.analysis.run import open_run
from scpslab.scenario import planning

FILE = {
    "event": "file",
    "bytes": 10_000,
    "sha256": "ab",
    "sent_sha256": "ab",
    "lost_bytes": 0,
    "duplicated_bytes": 0,
    "damaged_bytes": 0,
}
OPEN = {"command": "open 10.7.0.1 2121", "status": "complete", "seconds": 0.25}
GET = {
    "command": "get file.bin",
    "status": "complete",
    "octets": 10_000,
    "restarts": 0,
    "markers": [0],
    "seconds": 2.0,
    "integrity": "ok",
}


def client(*reports, start_t_s=1.0):
    """A client's line."""
    return {
        "event": "client",
        "start_t_s": start_t_s,
        "end_t_s": start_t_s + 9,
        "exit_code": 0,
        "reports": list(reports),
    }


def plan():
    """A plan with one transfer by the file protocol, whose client is at the receiving host, and without probes."""
    whole = planning.plan(scenario.cells(scenario.load("fp/restart", ["repeats=1"]))[0])
    (transfer,) = whole.cell.workloads
    return replace(
        whole,
        cell=replace(whole.cell, workloads=(replace(transfer, command="get", stop="none", stop_at=None),), probes=()),
    )


@pytest.fixture
def values(tmp_path):
    """Metrics of a cell with this record, by column."""

    def make(*lines):
        planned = plan()
        cell = tmp_path / "test-run" / "cells" / planned.cell.id
        (cell / "records").mkdir(parents=True)
        (tmp_path / "test-run" / "manifest.json").write_text(json.dumps({"format": 1, "scenario": "sgls/test"}))
        (cell / "plan.json").write_text(plans.text(planned))
        (cell / "status.json").write_text(
            json.dumps({"status": "completed", "reason": "", "epoch_realtime_ns": 0, "virtual_s": 2.0})
        )
        (cell / "records" / "transfer.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (one,) = open_run(tmp_path / "test-run").cells
        return measure(one)

    return make


def test_the_time_is_that_of_the_transfer_command_alone(values):
    found = values(client(OPEN, GET), FILE)
    assert (found["transfer_s"], found["client_total_s"], found["goodput_bps"]) == (2.0, 2.25, 40_000)
    assert (found["restarts"], found["moved_bytes"], found["resumed_at_bytes"], found["integrity_ok"]) == (
        0,
        10_000,
        None,
        True,
    )


def test_an_interrupted_and_resumed_transfer_is_one_transfer(values):
    first = GET | {"status": "interrupted", "octets": 4_000, "integrity": None}
    again = GET | {"command": "resume get file.bin", "octets": 6_000, "markers": [4_000], "seconds": 1.5}
    found = values(client(OPEN, first, again), FILE)
    assert (found["transfer_s"], found["restarts"], found["moved_bytes"], found["resumed_at_bytes"]) == (
        3.5,
        1,
        10_000,
        4_000,
    )


def test_a_killed_client_told_no_time_and_the_next_one_counts_as_a_restart(values):
    again = GET | {"command": "resume get file.bin", "octets": 6_000, "markers": [4_000]}
    found = values(client(OPEN), client(OPEN, again, start_t_s=8.0), FILE)
    assert (found["transfer_s"], found["client_total_s"], found["restarts"]) == (None, 9.25, 1)


def test_bytes_that_are_wrong_are_told(values):
    found = values(
        client(OPEN, GET | {"integrity": "mismatch"}), FILE | {"sha256": "cd", "lost_bytes": 7, "damaged_bytes": 3}
    )
    assert (found["payload_match"], found["integrity_ok"], found["lost_bytes"], found["damaged_bytes"]) == (
        False,
        False,
        7,
        3,
    )
