"""Runs: cache, resume, limits, and cells whose workloads give up."""

from __future__ import annotations

import json

import pytest

from scpslab.running import RunOptions, run_scenario

pytestmark = pytest.mark.lab
NAME = "fy97/fig04:kernel-test"
ONE_CELL = ["repeats=1", "sweep.ber.values=[0]", "workloads.transfer.size=20 kB"]


def run(out, overrides=(), **options):
    return run_scenario(NAME, RunOptions(out=out, overrides=[*ONE_CELL, *overrides], **options))


def test_a_run_folder_explains_itself(tmp_path):
    """Manifest, resolved scenario, plan, status, environment, records, captures, logs, results: all there."""
    result = run(tmp_path)

    cell = next((result.folder / "cells").iterdir())
    expected = {"plan.json", "status.json", "environment.json", "records", "captures", "logs"}
    assert (result.completed, result.incomplete, result.failed) == (1, 0, 0)
    assert expected <= {entry.name for entry in cell.iterdir()}
    assert json.loads((result.folder / "manifest.json").read_text())["status"] == "completed"
    assert (result.folder / "results.csv").read_text().count("\n") == 2
    assert "TCP" in (result.folder / "scenario.resolved.yaml").read_text()


def test_asking_again_runs_nothing(tmp_path, monkeypatch):
    """The second run takes the folder's own result, a third in another place takes the cache's; both leave the same
    bytes.
    """
    first = run(tmp_path / "a")
    monkeypatch.setattr("scpslab.engine.uml.UmlEngine.run", lambda self, cell: pytest.fail("a cell was run again"))

    again = run(tmp_path / "a")
    elsewhere = run(tmp_path / "b")

    assert again.completed == elsewhere.completed == 1
    assert (elsewhere.folder / "results.csv").read_bytes() == (first.folder / "results.csv").read_bytes()


def test_a_lab_that_does_not_keep_real_time_says_what_helps(tmp_path):
    """No machine keeps its ticks to a nanosecond."""
    result = run(tmp_path, ["limits.lateness=1 ns"], engine="live")

    (cell,) = (result.folder / "cells").iterdir()
    status = json.loads((cell / "status.json").read_text())
    assert (result.failed, status["status"]) == (1, "failed")
    assert "real time was not kept" in status["reason"]
    assert "as root: chrt -f 10 scpslab run" in status["reason"]
    assert "limits.lateness" in status["reason"]


def test_an_interrupted_run_keeps_what_is_finished(tmp_path, monkeypatch):
    """The second cell is interrupted: the first one's result is there and is not run again."""
    from scpslab.engine.base import Interrupted
    from scpslab.engine.uml import UmlEngine

    original = UmlEngine.run
    ran: list[str] = []

    def interrupt_second(self, cell):
        ran.append(cell.plan.cell.id)
        if len(ran) == 2:
            raise Interrupted
        return original(self, cell)

    options = RunOptions(out=tmp_path, overrides=["repeats=2", *ONE_CELL[1:], "seed=77"], jobs=1, use_cache=True)
    monkeypatch.setattr(UmlEngine, "run", interrupt_second)
    with pytest.raises(KeyboardInterrupt):
        run_scenario(NAME, options)
    monkeypatch.setattr(UmlEngine, "run", lambda self, cell: (ran.append(cell.plan.cell.id), original(self, cell))[1])
    result = run_scenario(NAME, options)

    assert result.completed == 2
    assert len(ran) == 3
    assert ran[1] == ran[2] != ran[0]


def test_a_cell_that_never_ends_fails_at_its_virtual_limit(tmp_path):
    """100 kB in a virtual limit of 3 s: failed, with the reason, and its logs are there."""
    result = run(tmp_path, ["limits.virtual=3 s", "workloads.transfer.size=100 kB"])

    cell = next((result.folder / "cells").iterdir())
    status = json.loads((cell / "status.json").read_text())
    assert result.failed == 1
    assert "virtual limit of 3 s" in status["reason"]
    assert (cell / "logs" / "tc.log").exists()


def test_a_cell_that_hangs_fails_at_its_wall_limit(tmp_path):
    """A wall limit of 1 s in engine live: the kernel is ended, the cell is failed, nothing of it is left running."""
    result = run(tmp_path, ["limits.wall=1 s"], engine="live")

    cell = next((result.folder / "cells").iterdir())
    assert result.failed == 1
    assert "wall limit of 1 s" in json.loads((cell / "status.json").read_text())["reason"]
    assert not list(cell.parent.glob("*.part"))


def test_a_transfer_that_gives_up_is_incomplete(tmp_path):
    """Nothing arrives for ever: the sender's patience ends the cell, which is incomplete and not failed."""
    result = run(tmp_path, ["links.hop.data.errors.outages=[{from: 0 s, to: 1 h}]", "workloads.transfer.patience=20 s"])

    assert result.incomplete == 1
    row = (result.folder / "results.csv").read_text().splitlines()[1]
    assert "incomplete" in row
    assert "gave up" in row


@pytest.mark.parametrize(
    "congestion", ["reno", "cubic", "bbr", "vegas", "hybla", "westwood", "highspeed", "illinois", "veno", "yeah"]
)
def test_every_congestion_control_is_in_the_kernel(tmp_path, congestion):
    """Each one carries a transfer, and the environment names it."""
    result = run(
        tmp_path,
        ["sweep.stack.cases={}".replace("{}", "{x: {hosts.*.preset: modern, hosts.*.congestion: " + congestion + "}}")],
    )

    cell = next((result.folder / "cells").iterdir())
    nodes = json.loads((cell / "environment.json").read_text())["nodes"]
    assert result.completed == 1
    assert nodes["ws1"]["sysctls"]["tcp_congestion_control"] == congestion
