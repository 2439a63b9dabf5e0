"""FTP and serial links: columns from records; what is not known stays empty."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from scpslab import plan as plans
from scpslab import scenario
from scpslab.analysis.collect import measure
from scpslab.analysis.run import open_run
from scpslab.scenario import planning

CLIENT = {"event": "client", "command": "get", "bytes": 10_000, "before_transfer_s": 0.5, "total_s": 1.5}
FILE = {"event": "file", "bytes": 10_000, "sha256": "ab", "sent_sha256": "ab"}
DIRECTION = {
    "event": "direction",
    "direction": "data",
    "sent_frames": 10,
    "received_frames": 8,
    "lost_frames": 2,
    "bit_errors": 3,
    "most_waiting_bytes": 99,
}


def plan():
    """A plan with one transfer by FTP over a serial link of 115200 baud, and 2400 back, and without probes."""
    whole = planning.plan(scenario.cells(scenario.load("sgls/itc-unbalanced", ["repeats=1"]))[0])
    (link,) = whole.network.serial_links
    assert [direction.rate_bps for direction in link.directions] == [115_200, 2_400]
    return replace(whole, cell=replace(whole.cell, probes=()))


@pytest.fixture
def values(tmp_path):
    """Metrics of a cell with these records, by column."""

    def make(transfer: list[dict], serial: list[dict]):
        planned = plan()
        cell = tmp_path / "test-run" / "cells" / planned.cell.id
        (cell / "records").mkdir(parents=True)
        (tmp_path / "test-run" / "manifest.json").write_text(json.dumps({"format": 1, "scenario": "sgls/test"}))
        (cell / "plan.json").write_text(plans.text(planned))
        (cell / "status.json").write_text(
            json.dumps({"status": "completed", "reason": "", "epoch_realtime_ns": 0, "virtual_s": 2.0})
        )
        for name, lines in (("transfer", transfer), ("serial", serial)):
            (cell / "records" / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (one,) = open_run(tmp_path / "test-run").cells
        return measure(one)

    return make


def test_the_transfer_is_what_the_client_reports_less_what_came_before(values):
    found = values([CLIENT, FILE], [])
    assert (found["bytes"], found["transfer_s"], found["client_total_s"], found["payload_match"]) == (
        10_000,
        1.0,
        1.5,
        True,
    )
    assert found["goodput_bps"] == 80_000
    assert found["utilization"] == pytest.approx(80_000 / 115_200)


def test_a_wrong_file_does_not_match(values):
    assert values([CLIENT, FILE | {"sha256": "cd"}], [])["payload_match"] is False


def test_a_client_that_said_nothing_has_no_time(values):
    found = values([{"event": "client"}, FILE], [])
    assert found["bytes"] == 10_000
    assert found.get("transfer_s") is None
    assert found.get("goodput_bps") is None


def test_frames_and_bit_errors_have_a_column_per_direction(values):
    found = values([CLIENT, FILE], [{"event": "ppp", "node": "ground"}, DIRECTION])
    assert {found[name] for name in found if name.startswith("serial_ack_")} == {None}
    assert {name: value for name, value in found.items() if name.startswith("serial_data_")} == {
        "serial_data_sent_frames": 10,
        "serial_data_lost_frames": 2,
        "serial_data_bit_errors": 3,
        "serial_data_most_waiting_bytes": 99,
    }
