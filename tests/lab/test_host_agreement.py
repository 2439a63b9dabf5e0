"""Engine `host` beside virtual time: the same cells on a machine's own kernel in real time, a guest being that machine.

SCPSLAB_AGREEMENT says how often each (make test-host: 3).
"""

from __future__ import annotations

import os

import pytest
from rich.console import Console

from scpslab.analysis.compare import Options, compare_runs
from scpslab.analysis.compare_texts import report
from scpslab.analysis.table import read_results
from scpslab.cli.tables import as_table
from scpslab.engine import ENGINES
from scpslab.running import RunOptions, run_scenario
from tests.lab.guest_machine import HostInGuest

pytestmark = pytest.mark.lab
REPEATS = int(os.environ.get("SCPSLAB_AGREEMENT", "0"))
# Computing takes time where time is real: some 10 ms of 20 s in engine live. What is left is for a clock that ticks
# every 10 ms.
TOLERANCE = 0.02


@pytest.mark.skipif(not REPEATS, reason="minutes of real time: make test-host")
def test_the_machine_s_kernel_in_real_time_agrees_with_virtual_time(tmp_path, monkeypatch):
    """FY97's Fig 4 without errors, where nothing but the engine makes a difference: TCP, BBR and SCPS-TP take the same
    time.
    """
    monkeypatch.setitem(ENGINES, HostInGuest.name, HostInGuest)
    overrides = [f"repeats={REPEATS}", "sweep.ber.values=[0]"]
    runs = [
        run_scenario("fy97/fig04:engines", RunOptions(engine=name, out=tmp_path, overrides=overrides))
        for name in (HostInGuest.name, "virtual")
    ]
    assert [(run.completed, run.failed) for run in runs] == [(4 * REPEATS, 0)] * 2

    found = compare_runs([read_results(run.folder) for run in runs], Options(metrics=["transfer_s"]))
    Console(width=160).print(as_table(report(found)))
    assert len(found.pairs) == 4
    for pair in found.pairs:
        assert pair.first.mean.mean == pytest.approx(pair.second.mean.mean, rel=TOLERANCE), pair.key
