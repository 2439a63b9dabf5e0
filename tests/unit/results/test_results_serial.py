"""FTP and serial links: columns from records; what is not known stays empty."""

from __future__ import annotations

import json

import pytest

from scpslab.results.collect import measure
from scpslab.results.run import open_run

PLAN = {
    "format": 1,
    "cell": {"id": "ber=0,r1", "scenario": "sgls/test", "axes": {"ber": 0}, "repeat": 1, "kernel_seed": "00"},
    "topology": "sgls",
    "nodes": [{"name": "satellite", "kind": "host"}, {"name": "ground", "kind": "host"}],
    "links": [],
    "serial_links": [
        {
            "name": "serial",
            "ends": [{"node": "satellite", "ip": "10.7.0.1/30"}, {"node": "ground", "ip": "10.7.0.2/30"}],
            "directions": [
                {"name": "data", "from": "satellite", "to": "ground", "rate_bps": 115_200},
                {"name": "ack", "from": "ground", "to": "satellite", "rate_bps": 2_400},
            ],
        }
    ],
    "workloads": [{"name": "transfer", "kind": "ftp", "from": "satellite", "to": "ground", "to_ip": "10.7.0.2", "port": 21}],
    "probes": [],
}
CLIENT = {"event": "client", "command": "get", "bytes": 10_000, "before_transfer_s": 0.5, "total_s": 1.5}
FILE = {"event": "file", "bytes": 10_000, "sha256": "ab", "sent_sha256": "ab"}
DIRECTION = {"event": "direction", "direction": "data", "sent_frames": 10, "received_frames": 8, "lost_frames": 2, "bit_errors": 3, "most_waiting_bytes": 99}


@pytest.fixture
def values(tmp_path):
    """Metrics of a cell with these records, by column."""

    def make(transfer: list[dict], serial: list[dict]):
        cell = tmp_path / "test-run" / "cells" / "ber=0,r1"
        (cell / "records").mkdir(parents=True)
        (tmp_path / "test-run" / "manifest.json").write_text(json.dumps({"format": 1, "scenario": "sgls/test"}))
        (cell / "plan.json").write_text(json.dumps(PLAN))
        (cell / "status.json").write_text(json.dumps({"status": "completed", "reason": "", "epoch_realtime_ns": 0, "virtual_s": 2.0}))
        for name, lines in (("transfer", transfer), ("serial", serial)):
            (cell / "records" / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (one,) = open_run(tmp_path / "test-run").cells
        return measure(one)

    return make


def test_the_transfer_is_what_the_client_reports_less_what_came_before(values):
    found = values([CLIENT, FILE], [])
    assert (found["bytes"], found["transfer_s"], found["client_total_s"], found["payload_match"]) == (10_000, 1.0, 1.5, True)
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
    assert {name: value for name, value in found.items() if name.startswith("serial_")} == {
        "serial_data_sent_frames": 10,
        "serial_data_lost_frames": 2,
        "serial_data_bit_errors": 3,
        "serial_data_most_waiting_bytes": 99,
    }
