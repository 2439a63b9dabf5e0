"""FTP, the file protocol and serial links: columns from records; what is not known stays empty."""

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
FP_FILE = {
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
DIRECTION = {
    "event": "direction",
    "direction": "data",
    "sent_frames": 10,
    "received_frames": 8,
    "lost_frames": 2,
    "bit_errors": 3,
    "most_waiting_bytes": 99,
}


@pytest.fixture
def measured(tmp_path):
    """Metrics of a completed cell of a plan with these records, by column."""

    def make(plan, **records):
        cell = tmp_path / "test-run" / "cells" / plan.cell.id
        (cell / "records").mkdir(parents=True)
        (tmp_path / "test-run" / "manifest.json").write_text(json.dumps({"format": 1, "scenario": "sgls/test"}))
        (cell / "plan.json").write_text(plans.text(plan))
        ended = {"status": "completed", "reason": "", "epoch_realtime_ns": 0, "virtual_s": 2.0}
        (cell / "status.json").write_text(json.dumps(ended))
        for name, lines in records.items():
            (cell / "records" / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (only,) = open_run(tmp_path / "test-run").cells
        return measure(only)

    return make


@pytest.fixture(scope="module")
def serial():
    """A plan with one transfer by FTP over a serial link of 115200 baud, and 2400 back, and without probes."""
    whole = planning.plan(scenario.cells(scenario.load("sgls/itc-unbalanced", ["repeats=1"]))[0])
    (link,) = whole.network.serial_links
    assert [direction.rate_bps for direction in link.directions] == [115_200, 2_400]
    return replace(whole, cell=replace(whole.cell, probes=()))


@pytest.fixture(scope="module")
def by_fp():
    """A plan with one transfer by the file protocol, whose client is at the receiving host, and without probes."""
    whole = planning.plan(scenario.cells(scenario.load("fp/restart", ["repeats=1"]))[0])
    (transfer,) = whole.cell.workloads
    transfer = replace(transfer, command="get", stop="none", stop_at=None)
    return replace(whole, cell=replace(whole.cell, workloads=(transfer,), probes=()))


@pytest.mark.parametrize(
    ("client", "file", "expected"),
    [
        # What the client reports, less what came before.
        (CLIENT, FILE, {"bytes": 10_000, "transfer_s": 1.0, "client_total_s": 1.5, "payload_match": True}),
        (CLIENT, FILE, {"goodput_bps": 80_000, "utilization": pytest.approx(80_000 / 115_200)}),
        (CLIENT, FILE | {"sha256": "cd"}, {"payload_match": False}),
        ({"event": "client"}, FILE, {"bytes": 10_000, "transfer_s": None, "goodput_bps": None}),
    ],
)
def test_a_transfer_by_ftp_is_what_client_and_file_say(measured, serial, client, file, expected):
    found = measured(serial, transfer=[client, file])
    assert {name: found.get(name) for name in expected} == expected


def test_frames_and_bit_errors_have_a_column_per_direction(measured, serial):
    found = measured(serial, transfer=[CLIENT, FILE], serial=[{"event": "ppp", "node": "ground"}, DIRECTION])
    assert {name: value for name, value in found.items() if name.startswith("serial_")} == {
        "serial_data_sent_frames": 10,
        "serial_data_lost_frames": 2,
        "serial_data_bit_errors": 3,
        "serial_data_most_waiting_bytes": 99,
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


KILLED_AND_RESUMED = GET | {"command": "resume get file.bin", "octets": 6_000, "markers": [4_000]}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # The time is that of the transfer command alone.
        ([client(OPEN, GET), FP_FILE], {"transfer_s": 2.0, "client_total_s": 2.25, "goodput_bps": 40_000}),
        (
            [client(OPEN, GET), FP_FILE],
            {"restarts": 0, "moved_bytes": 10_000, "resumed_at_bytes": None, "integrity_ok": True},
        ),
        # Interrupted and resumed, it is one transfer.
        (
            [
                client(
                    OPEN,
                    GET | {"status": "interrupted", "octets": 4_000, "integrity": None},
                    KILLED_AND_RESUMED | {"seconds": 1.5},
                ),
                FP_FILE,
            ],
            {"transfer_s": 3.5, "restarts": 1, "moved_bytes": 10_000, "resumed_at_bytes": 4_000},
        ),
        # A killed client told no time, and the next one counts as a restart.
        (
            [client(OPEN), client(OPEN, KILLED_AND_RESUMED, start_t_s=8.0), FP_FILE],
            {"transfer_s": None, "client_total_s": 9.25, "restarts": 1},
        ),
        (
            [
                client(OPEN, GET | {"integrity": "mismatch"}),
                FP_FILE | {"sha256": "cd", "lost_bytes": 7, "damaged_bytes": 3},
            ],
            {"payload_match": False, "integrity_ok": False, "lost_bytes": 7, "damaged_bytes": 3},
        ),
    ],
)
def test_a_transfer_by_the_file_protocol_is_what_its_clients_and_file_say(measured, by_fp, lines, expected):
    found = measured(by_fp, transfer=lines)
    assert {name: found[name] for name in expected} == expected
