"""Columns of transfers of files and of serial links, from records; what is not known stays empty."""

from dataclasses import replace

import pytest

from scpslab import scenario
from scpslab.analysis.collect import measure
from scpslab.analysis.run import open_run
from scpslab.scenario import planning
from tests.runs import write_cell, write_manifest

FTP = {"event": "client", "command": "get", "bytes": 10_000, "before_transfer_s": 0.5, "total_s": 1.5}
SAME = {"event": "file", "bytes": 10_000, "sha256": "ab", "sent_sha256": "ab"}
FILE = SAME | {"lost_bytes": 0, "duplicated_bytes": 0, "damaged_bytes": 0}
DIRECTION = {
    "event": "direction",
    "direction": "forward",
    "sent_frames": 10,
    "received_frames": 8,
    "lost_frames": 2,
    "bit_errors": 3,
    "most_waiting_bytes": 99,
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
    """A line of a client of SCPS-FP."""
    return {"event": "client", "start_t_s": start_t_s, "end_t_s": start_t_s + 9, "exit_code": 0, "reports": reports}


def by_ftp():
    """A plan with one transfer by FTP over a serial link of 115200 baud, and 2400 back."""
    plan = planning.plan(scenario.cells(scenario.load("sgls/itc-unbalanced", ["repeats=1"]))[0])
    (link,) = plan.network.serial_links
    assert [direction.rate_bps for direction in link.directions] == [115_200, 2_400]
    return plan


def by_fp():
    """A plan with one transfer by the file protocol, whose client is at the receiving host."""
    plan = planning.plan(scenario.cells(scenario.load("fp/restart", ["repeats=1"]))[0])
    (transfer,) = plan.cell.workloads
    transfer = replace(transfer, command="get", stop="none", stop_at=None)
    return replace(plan, cell=replace(plan.cell, workloads=(transfer,)))


@pytest.fixture
def values(tmp_path):
    """Metrics of a cell of a plan without probes, with these records, by column."""

    def make(plan, **records):
        plan = replace(plan, cell=replace(plan.cell, probes=()))
        cell = tmp_path / "test-run" / "cells" / plan.cell.id
        write_cell(cell, plan, records, epoch_realtime_ns=0, virtual_s=2.0)
        write_manifest(tmp_path / "test-run", "sgls/test")
        (run_cell,) = open_run(tmp_path / "test-run").cells
        return measure(run_cell)

    return make


def those(found, *names):
    """The values of some columns."""
    return tuple(found.get(name) for name in names)


def test_ftp_s_transfer_is_what_the_client_reports_less_what_came_before(values):
    found = values(by_ftp(), transfer=[FTP, SAME])
    assert those(found, "bytes", "transfer_s", "client_total_s", "payload_match") == (10_000, 1.0, 1.5, True)
    assert found["goodput_bps"] == 80_000
    assert found["utilization"] == pytest.approx(80_000 / 115_200)


def test_an_ftp_client_that_told_nothing_has_no_time_and_a_wrong_file_does_not_match(values):
    found = values(by_ftp(), transfer=[{"event": "client"}, SAME | {"sha256": "cd"}])
    assert those(found, "bytes", "transfer_s", "goodput_bps", "payload_match") == (10_000, None, None, False)


def test_frames_and_bit_errors_have_a_column_per_direction(values):
    found = values(by_ftp(), serial=[{"event": "ppp", "node": "ground"}, DIRECTION])
    assert not [name for name in found if name.startswith("serial_ack_")]
    assert "serial_ack_sent_frames, serial_ack_lost_frames" in found["unmeasured"]
    assert {name: value for name, value in found.items() if name.startswith("serial_data_")} == {
        f"serial_data_{name}": DIRECTION[name]
        for name in ("sent_frames", "lost_frames", "bit_errors", "most_waiting_bytes")
    }


HALF = GET | {"status": "interrupted", "octets": 4_000, "integrity": None}
AGAIN = GET | {"command": "resume get file.bin", "octets": 6_000, "markers": [4_000], "seconds": 1.5}
WRONG = FILE | {"sha256": "cd", "lost_bytes": 7, "damaged_bytes": 3}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (
            [client(OPEN, GET), FILE],
            {"transfer_s": 2.0, "client_total_s": 2.25, "goodput_bps": 40_000, "restarts": 0, "moved_bytes": 10_000}
            | {"resumed_at_bytes": None, "integrity_ok": True},
        ),
        (
            [client(OPEN, HALF, AGAIN), FILE],
            {"transfer_s": 3.5, "restarts": 1, "moved_bytes": 10_000, "resumed_at_bytes": 4_000},
        ),
        (
            [client(OPEN), client(OPEN, AGAIN | {"seconds": 2.0}, start_t_s=8.0), FILE],
            {"transfer_s": None, "client_total_s": 9.25, "restarts": 1},
        ),
        (
            [client(OPEN, GET | {"integrity": "mismatch"}), WRONG],
            {"payload_match": False, "integrity_ok": False, "lost_bytes": 7, "damaged_bytes": 3},
        ),
    ],
    ids=["the transfer command alone is timed", "resumed is one transfer", "killed told no time", "wrong bytes"],
)
def test_columns_of_the_file_protocol(values, records, expected):
    found = values(by_fp(), transfer=records)
    assert {name: found.get(name) for name in expected} == expected


def test_a_last_client_that_was_killed_before_it_reported_leaves_the_figures_of_those_before(values):
    killed = client(start_t_s=20.0) | {"exit_code": -9}
    found = values(by_fp(), transfer=[client(GET, start_t_s=4.0), killed, SAME])
    assert those(found, "client_total_s", "restarts", "moved_bytes", "integrity_ok") == (2.0, 1, 10_000, True)
