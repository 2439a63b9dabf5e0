"""Transfers over SCPS-NP through two routers and a serial line: accounts that close, what routers signal, whom they
discard.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scpslab.analysis.collect import measure
from scpslab.analysis.run import open_run
from tests.lab.conftest import run_text
from tests.lab.test_determinism import digests

pytestmark = pytest.mark.lab

HOSTS = """  ws1: {stack: scps, network: np}
  ws2: {stack: scps, network: np}
  ws3: {stack: scps, network: np, congestion: none, loss: corruption, rate: 2600 kbit/s}
"""
TRANSFER = "- {kind: bulk, name: transfer, from: ws1, to: ws2, size: 200 kB, precedence: 9}"
LOAD = "- {kind: bulk, name: load, from: ws3, to: ws2, port: 5003, size: 20 MB, required: false, patience: 200 s}"
Run = Callable[..., tuple[Path, dict[str, Any]]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a transfer of precedence 9 with further words; the run folder and the cell's metrics."""

    def carry_out(more: str = "", workloads: str = "", out: str = "runs") -> tuple[Path, dict[str, Any]]:
        words = (
            "kind: scenario\nversion: 1\ntitle: NP\ntopology: fy97_np\nlimits: {virtual: "
            f"300 s}}\nhosts:\n{HOSTS}{more}"
        )
        words += f"workloads:\n{TRANSFER}\n{workloads}\n"
        result = run_text(tmp_path, words, out)
        (cell,) = open_run(result.folder).cells
        assert cell.status == "completed", cell.reason
        return result.folder, measure(cell)

    return carry_out


@pytest.mark.smoke
def test_a_transfer_crosses_both_routers_and_every_frame_is_accounted_for(run: Run) -> None:
    folder, found = run()
    assert found["payload_match"] is True
    assert (found["modem_data_lost_frames"], found["modem_ack_lost_frames"]) == (0, 0)
    assert found["ws5_modem_p9_queued"] == found["modem_data_sent_frames"]
    assert [found[f"transfer_{kind}_signals"] for kind in ("congestion", "corruption", "outage")] == [0, 0, 0]
    again, _ = run(out="again")
    assert digests(folder) == digests(again)


def test_bit_errors_are_signalled_as_corruption_and_as_nothing_else(run: Run) -> None:
    _, found = run("links: {modem: {data: {errors: {model: independent, ber: 1.0e-5}}}}\n")
    assert found["ws6_modem_damaged"] > 5
    # One error in 256 makes a flag of an octet, and so two pieces of one frame; one in a thousand hits a flag, and
    # joins two frames.
    assert abs(found["modem_data_lost_frames"] - found["ws6_modem_damaged"]) <= 1
    assert 0 < found["transfer_corruption_signals"] <= found["ws6_corruption_reports"]
    assert (found["transfer_congestion_signals"], found["payload_match"]) == (0, True)


def test_an_overloaded_router_quenches_and_discards_the_lowest_precedence(run: Run) -> None:
    _, found = run(workloads=LOAD)
    assert found["ws5_source_quenches"] > 0
    assert found["load_congestion_signals"] > 0
    assert found["transfer_corruption_signals"] == 0
    assert found["ws5_modem_p0_discarded"] > 100
    assert found["ws5_modem_p9_discarded"] == 0
