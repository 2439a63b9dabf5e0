"""results.csv from run folders."""

import csv
import json
import os
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from scpslab import plan as plans
from scpslab.analysis import collect, run
from scpslab.analysis.capture import read_packets
from scpslab.analysis.run import natural, open_run
from scpslab.core.errors import ResultError
from scpslab.runs import CellFiles, find_run
from tests import golden as messages
from tests.cases import changed, refusal

from scpslab.kinds.workloads.background.plan import Background
from scpslab.kinds.workloads.bulk.metrics import REPORT_PCT
from scpslab.kinds.workloads.iperf3.plan import Iperf3
from scpslab.kinds.workloads.ping.plan import Ping

CELL = "cells/stack=bbr,ber=0,r1"


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_one_row_per_cell_with_axes_status_and_metrics(run_dir):
    rows = rows_of(collect(run_dir))
    assert [row["cell"] for row in rows][:3] == ["stack=bbr,ber=0,r1", "stack=bbr,ber=0,r2", "stack=bbr,ber=1e-06,r1"]
    assert {row["status"] for row in rows} == {"completed", "incomplete"}
    first = rows[0]
    axes = [first[name] for name in ("scenario", "topology", "stack", "ber", "repeat")]
    assert axes == ["fig04-golden", "fy97", "bbr", "0", "1"]
    assert first["bytes"] == "60000"
    assert first["transfer_source"] == "packets"
    assert first["payload_match"] == "true"
    assert first["hop_data_lost_corrupt_packets"] == "0"
    assert first["max_advertised_window_bytes"] == "200000"


def test_derived_columns_agree_with_each_other(run_dir):
    for row in rows_of(collect(run_dir)):
        if row["status"] != "completed":
            continue
        transfer_s = float(row["transfer_s"])
        assert float(row["goodput_bps"]) == pytest.approx(480_000 / transfer_s)
        # The hop's data direction has 2 Mbit/s, the LAN 10.
        assert float(row["utilization"]) == pytest.approx(480_000 / transfer_s / 2e6)
        assert float(row["throughput_report_pct"]) == pytest.approx(float(row["utilization"]) * 100 / 1.024)
        assert row["retransmissions"] == row["capture_retransmissions"]
        assert float(row["user_s"]) > transfer_s


@pytest.mark.parametrize(("segment", "has_rate"), [(59_999, True), (60_000, False)])
def test_a_transfer_of_one_segment_has_a_time_and_no_rate(run_dir, segment, has_rate):
    record = CellFiles(run_dir / CELL).record("transfer")
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    changed = [line | {"mss_bytes": segment} if "mss_bytes" in line else line for line in lines]
    assert changed != lines
    record.write_text("".join(json.dumps(line) + "\n" for line in changed))

    row = rows_of(collect(run_dir))[0]

    assert float(row["transfer_s"]) > 0
    assert [bool(row[name]) for name in ("goodput_bps", "utilization", "throughput_report_pct")] == [has_rate] * 3


def test_a_sender_that_was_cut_off_has_no_time_that_a_user_waits(run_dir):
    """In a cell that was completed by others."""
    record = CellFiles(run_dir / CELL).record("transfer")
    text = record.read_text()
    record.write_text(text.replace('"status": "completed"', '"status": "incomplete"'))
    assert record.read_text() != text
    row = rows_of(collect(run_dir))[0]
    assert (row["status"], row["user_s"]) == ("completed", "")
    assert "user_s" in row["unmeasured"]


def test_the_report_s_unit_gives_the_report_s_percentages():
    # apparatus §8: 16.8 s is 93 %, 21.1 s is 74 %, both for 4,000,000 bytes at 2 Mbit/s.
    found = [4_000_000 * 8 / (took_s * 2_000_000) * REPORT_PCT for took_s in (16.8, 21.1)]
    assert found == pytest.approx([93.0, 74.05], abs=0.05)


def test_an_incomplete_cell_keeps_its_row_and_no_numbers(run_dir):
    (row,) = (row for row in rows_of(collect(run_dir)) if row["status"] == "incomplete")
    assert row["reason"] == "transfer: sender gave up: Connection timed out"
    after = list(row)[list(row).index("reason") + 1 :]
    assert {row[name] for name in after} == {""}


def test_a_cell_that_did_not_end_is_failed(run_dir):
    (run_dir / CELL / "status.json").unlink()
    row = rows_of(collect(run_dir))[0]
    assert row["status"] == "failed"
    assert "did not end" in row["reason"]
    assert CellFiles(run_dir / CELL).status().status == "failed"


def test_collecting_again_gives_the_same_bytes_and_leaves_the_raw_files_alone(run_dir):
    raw = {path: path.read_bytes() for path in (run_dir / "cells").rglob("*") if path.is_file()}
    first = collect(run_dir).read_bytes()
    assert collect(run_dir).read_bytes() == first
    assert {path: path.read_bytes() for path in (run_dir / "cells").rglob("*") if path.is_file()} == raw
    assert sorted(path.name for path in run_dir.iterdir()) == ["cells", "manifest.json", "results.csv"]


@pytest.mark.parametrize(
    ("where", "cut_bytes", "source"),
    [("ws4", 7, "packets"), ("ws2", 7, "packets"), ("ws2", 2000, "record"), ("ws2", None, "record")],
)
def test_a_capture_cut_short_is_told_and_only_a_whole_one_at_the_sink_counts(run_dir, where, cut_bytes, source):
    """Otherwise the receiver's record is used, and said so."""
    path = CellFiles(run_dir / CELL).capture(where)
    if cut_bytes is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-cut_bytes])
    said = []
    row = rows_of(collect(run_dir, said.append))[0]
    told = [f"{path}: found a capture that ends in the middle of a packet"] if cut_bytes else []
    assert [text.partition(";")[0] for text in said] == told
    assert row["transfer_source"] == source
    receiver = json.loads(CellFiles(run_dir / CELL).record("transfer").read_text().splitlines()[1])
    if source == "record":
        assert float(row["transfer_s"]) == pytest.approx(receiver["last_data_t_s"] - receiver["first_data_t_s"])
        assert row["transfer_from_syn_s"] == ""


def test_a_second_workload_of_a_kind_has_its_name_in_its_columns_and_no_capture_is_read_again(run_dir, monkeypatch):
    cell = run_dir / CELL
    plan = plans.parse((cell / "plan.json").read_bytes())
    ends = {"from_": "ws1", "to": "ws2", "to_ip": "10.2.0.2", "start_ns": 0}
    noise = {"max_rate_bps": 0, "redraw_ns": 10**9, "packet_bytes": 1456, "rates_bps": (), "port": 5002}
    iperf3 = {"duration_ns": None, "bytes_": 1000, "port": 5201, "congestion_control": None, "segment_bytes": None}
    iperf3 |= {"reverse": False, "udp_rate_bps": None, "parallel": 1, "timeout_ns": 10**9}
    more = (
        replace(plan.cell.workloads[0], name="second", port=5009),
        Ping(name="echo", **ends, required=True, count=3, interval_ns=10**9, payload_bytes=56),
        Background(name="noise", **ends, required=False, **noise),
        Iperf3(name="probe", **ends, required=True, **iperf3),
    )
    workloads = (*plan.cell.workloads, *more)
    (cell / "plan.json").write_text(plans.text(replace(plan, cell=replace(plan.cell, workloads=workloads))))
    records = cell / "records"
    shutil.copy(records / "transfer.jsonl", records / "second.jsonl")
    (records / "echo.jsonl").write_text(
        '{"seq": 1, "rtt_ms": 530.5, "t_s": 2}\n{"seq": 2, "rtt_ms": 531.5, "t_s": 3}\n{"event": "summary", "sent": '
        '3, "received": 2}\n'
    )
    (records / "noise.jsonl").write_text(
        '{"event": "rate", "t_s": 0, "rate_bps": 5}\n{"event": "summary", "t_s": 9, "sent_packets": '
        '4, "sent_bytes": 5824}\n'
    )
    end = {"sum_sent": {"retransmits": 3}, "sum_received": {"bytes": 1000, "seconds": 2.0, "bits_per_second": 4000.0}}
    (records / "probe.jsonl").write_text(json.dumps({"event": "iperf3", "result": {"end": end}}) + "\n")
    read = []
    monkeypatch.setattr(run, "read_packets", lambda path: read.append(path) or read_packets(path))
    row = rows_of(collect(run_dir))[0]
    assert len(read) == len(set(read)) > 0
    assert row["second_bytes"] == "60000"
    assert row["second_transfer_source"] == "record"
    assert (row["sent"], row["received"], row["rtt_mean_ms"]) == ("3", "2", "531.000000")
    assert (row["congestion_offered_packets"], row["congestion_offered_bytes"]) == ("4", "5824")
    assert (row["probe_goodput_bps"], row["probe_retransmissions"]) == ("4000.000", "3")
    assert row["transfer_bytes"] == "60000"
    # Whose it would be, nobody could say.
    assert row["bytes"] == ""


def test_the_golden_run_gives_the_committed_table(golden, tmp_path):
    copy = tmp_path / golden.name
    shutil.copytree(golden, copy)
    (copy / "results.csv").unlink()
    assert collect(copy).read_text() == (golden / "results.csv").read_text()


@messages.each("run folder that is damaged", "case file old new")
def test_what_is_wrong_with_a_run_is_named(run_dir, case, file, old, new):
    path = run_dir / file.replace("CELL", CELL)
    if new == "GONE":
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    elif old == "WHOLE":
        path.write_bytes(new.replace("NOISE", "\xff" * 100).encode("latin-1"))
    else:
        path.write_text(changed(path.read_text(), (old, new)))
    case.hold(refusal(collect, run_dir, error=ResultError), run_dir)
    assert not list(run_dir.glob(".results*"))


def test_a_record_line_cut_short_is_left_out(run_dir):
    path = run_dir / CELL / "records" / "accounting.jsonl"
    lines = path.read_text().splitlines()
    path.write_text(path.read_text()[:-10])
    assert len(open_run(run_dir).cells[0].records("accounting")) == len(lines) - 1


def test_last_is_the_newest_run(run_dir, tmp_path):
    assert find_run("last", tmp_path) == run_dir
    assert find_run(run_dir.name, tmp_path) == run_dir
    with pytest.raises(ResultError, match="no such folder"):
        find_run("nothing", tmp_path)
    with pytest.raises(ResultError, match="no run"):
        find_run("last", tmp_path / "empty")


def test_last_is_never_a_run_without_a_finished_cell(run_dir, tmp_path):
    """A newer run that has begun, and one that was stopped in its first cell, are no last."""
    for name, cell in (("begun", None), ("stopped", "r1")):
        shutil.copytree(
            run_dir,
            tmp_path / name,
            ignore=lambda folder, names, cell=cell: names if Path(folder).name == "cells" else [],
        )
        if cell:
            (tmp_path / name / "cells" / cell).mkdir()
            (tmp_path / name / "cells" / cell / "plan.json").write_text("{}")
        os.utime(tmp_path / name / "manifest.json", (2**33, 2**33))
        assert find_run("last", tmp_path) == run_dir
    shutil.rmtree(run_dir)
    with pytest.raises(ResultError, match=r"found no run with a finished cell; expected one\. Run a scenario first"):
        find_run("last", tmp_path)


def test_natural_order_is_by_size():
    rising = ["0", "1e-06", "1e-05", "5e-05", "9", "10"]
    assert all(natural(one) < natural(next_) for one, next_ in pairwise(rising))
