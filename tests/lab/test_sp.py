"""Transfers that SCPS-SP protects: over IPv4 and SCPS-NP, by SCPS-TP alone and SCPS-FP; two keys that differ; what can
be seen of it from outside.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from scpslab.analysis.collect import measure
from scpslab.analysis.run import RunCell, open_run
from scpslab.lab.scps_end import master_key
from scpslab.running import RunOptions, run_scenario
from tests.lab.test_determinism import digests

pytestmark = pytest.mark.lab

BULK = "- {kind: bulk, name: transfer, from: ws1, to: ws2, size: 100 kB, patience: 60 s}"
FILE = "- {kind: fp, name: file, from: ws1, to: ws2, size: 100 kB, command: put, stop: kill-client, patience: 200 s}"
CAPTURE = "probes:\n- {kind: capture, node: ws1}\n"
Run = Callable[..., RunCell]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs one cell between two protected hosts; `other` is the second one's sp."""

    def carry_out(topology: str, workloads: str, other: str = "{}", more: str = "", out: str = "runs") -> RunCell:
        network = "np" if topology == "fy97_np" else "ip"
        words = f"kind: scenario\nversion: 1\ntitle: SP\ntopology: {topology}\nlimits: {{virtual: 300 s}}\nhosts:\n"
        words += (
            f"  ws1: {{stack: scps, network: {network}, sp: {{}}}}\n  ws2: {{stack: scps, network: {network}, sp: "
            f"{other}}}\n"
        )
        words += f"workloads:\n{workloads}\n{more}"
        (path := tmp_path / "sp.yaml").write_text(words)
        (cell,) = open_run(
            run_scenario(str(path), RunOptions(out=tmp_path / out, jobs=1, use_cache=False)).folder
        ).cells
        return cell

    return carry_out


@pytest.mark.parametrize("topology", ["fy97", "fy97_np"])
def test_every_packet_of_a_transfer_and_a_resumed_file_is_protected(run: Run, topology: str) -> None:
    cell = run(topology, f"{BULK}\n{FILE}")
    assert cell.status == "completed", cell.reason
    found = measure(cell)
    assert found["transfer_sender_sp_sealed"] == found["transfer_receiver_sp_opened"] > 70
    assert found["transfer_receiver_sp_sealed"] == found["transfer_sender_sp_opened"] > 0
    assert (found["transfer_sender_sp_dropped"], found["transfer_receiver_sp_dropped"]) == (0, 0)


def test_another_key_at_one_end_is_named_as_the_reason(run: Run) -> None:
    cell = run("fy97", BULK, other="{key_name: other}")
    assert cell.status == "incomplete"
    assert "transfer: sender gave up: " in cell.reason
    assert "SCPS-SP: nothing came that verifies, the other end may have another key" in cell.reason


def test_the_key_is_in_none_of_the_cells_files_and_a_repetition_is_the_same(run: Run) -> None:
    first, second = (run("fy97", BULK, more=CAPTURE, out=out) for out in ("runs", "again"))
    assert digests(first.folder.parents[1]) == digests(second.folder.parents[1])
    key = master_key(first.plan.cell.workloads[0].from_scps.sp.key_seed)
    files = [path for path in first.folder.rglob("*") if path.is_file()]
    assert [path.name for path in files if path.suffix == ".pcap"] == ["ws1.pcap"]
    assert [
        path.name for path in files if key.encode() in path.read_bytes() or bytes.fromhex(key) in path.read_bytes()
    ] == []
