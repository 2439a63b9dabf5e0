"""SCPS-TP on hosts of the lab: with itself and with the kernel's TCP, and what its records say."""

from __future__ import annotations

import json

import pytest

from scpslab.analysis.run import open_run
from scpslab.running import RunOptions, run_scenario

pytestmark = pytest.mark.lab
SCPS = "{stack: scps, preset: fy97-rate}"
ENDS = {
    "scps to scps": (SCPS, SCPS),
    "scps to kernel": (SCPS, "{preset: modern}"),
    "kernel to scps": ("{preset: modern}", SCPS),
    "vegas to kernel of 1997": ("{stack: scps, preset: fy97-vegas}", "{preset: fy97-reno}"),
}


def run(out, *overrides, name="fy97/fig04:test"):
    return run_scenario(name, RunOptions(out=out, overrides=list(overrides), jobs=1))


def transfer(folder):
    """The sender's and the receiver's line of the one cell's transfer."""
    (cell,) = open_run(folder).cells
    return {line["event"]: line for line in cell.records("transfer")}


@pytest.mark.parametrize("ends", ENDS)
def test_every_byte_arrives_whoever_is_at_the_ends(ends, tmp_path):
    """50 kB at 5e-5 each way: both ends say so, and the bytes were compared."""
    source, sink = ENDS[ends]
    result = run(
        tmp_path,
        "sweep={}",
        f"hosts.ws1={source}",
        f"hosts.ws2={sink}",
        "links.hop.*.errors.ber=5e-5",
        "workloads.transfer.size=50 kB",
    )

    lines = transfer(result.folder)
    assert (result.completed, result.failed) == (1, 0)
    assert lines["receiver"]["bytes"] == 50_000
    assert lines["receiver"]["wrong_bytes"] == 0
    assert lines["sender"]["status"] == "completed"


def test_rate_control_fills_the_hop_and_queues_nothing(tmp_path):
    """Full segments at the rate that fits: the queue before the hop never holds more than the bucket, and the hop never
    idles.
    """
    result = run(
        tmp_path,
        "sweep={}",
        f"hosts.*={SCPS}",
        "workloads.transfer.size=500 kB",
        "probes=[{kind: capture, node: ws2}, {kind: tcp_info, node: ws1, interval: 100 ms}]",
    )

    (cell,) = open_run(result.folder).cells
    account = next(line for line in cell.records("accounting") if (line["link"], line["direction"]) == ("hop", "data"))
    row = (result.folder / "results.csv").read_text().splitlines()
    values = dict(zip(row[0].split(","), row[1].split(","), strict=True))
    seconds = 500_000 / 1400 * 1456 * 8 / 2e6
    assert account["queue_packets"] == 0
    # The bucket holds 5 ticks of 10 ms: 12.5 kB may stand in the queue and make the round trip 50 ms longer; it never
    # grows.
    assert account["most_bytes"] < 16_000
    assert float(values["transfer_s"]) == pytest.approx(seconds, rel=0.02)
    samples = [line for line in cell.records("tcp-ws1") if line["rate_credit_bytes"] is not None]
    assert max(line["srtt_ms"] for line in samples if line["srtt_ms"]) < 590


@pytest.mark.smoke
def test_the_same_cell_twice_has_the_same_bytes(tmp_path):
    """Packets, trace and report of the SCPS programs are part of what is reproducible."""
    overrides = ("probes=[{kind: capture, node: ws2}, {kind: tcp_info, node: ws1}]",)
    folders = [
        run_scenario(
            "fy97/fig04:test", RunOptions(out=tmp_path / name, overrides=list(overrides), use_cache=False)
        ).folder
        for name in ("a", "b")
    ]

    files = [
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("cells/**/*") if path.is_file()}
        for folder in folders
    ]
    assert len(files[0]) > 10
    assert files[0] == files[1]


def test_a_sender_that_hears_nothing_gives_up(tmp_path):
    """An outage of the whole patience: the cell is incomplete, and says who gave up."""
    result = run(
        tmp_path,
        "sweep={}",
        f"hosts.*={SCPS}",
        "links.hop.*.errors.outages=[{from: 2 s, to: 3000 s}]",
        "workloads.transfer.patience=60 s",
    )

    (cell,) = open_run(result.folder).cells
    status = json.loads((result.folder / "cells" / cell.id / "status.json").read_text())
    assert result.incomplete == 1
    assert "gave up" in status["reason"]
