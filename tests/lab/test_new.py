"""Scenarios of `scpslab new` run as they are: every network once, and every traffic once."""

from __future__ import annotations

import pytest

from scpslab.running import RunOptions, run_scenario
from scpslab.scenario import fresh

pytestmark = pytest.mark.lab
CASES = [(topology, "bulk") for topology in fresh.networks()] + [("point_to_point", kind) for kind in fresh.workload_kinds() if kind != "bulk"]


@pytest.mark.parametrize(("topology", "workload"), CASES)
def test_a_new_scenario_completes(tmp_path, topology, workload):
    size = "20 kB" if fresh.has_size(workload) else None
    (tmp_path / "mine.yaml").write_text(fresh.text(fresh.Choices("mine", topology, workload, stacks=["cubic"], bers=["0"], size=size, repeats=1)))
    result = run_scenario(str(tmp_path / "mine.yaml"), RunOptions(out=tmp_path / "runs", jobs=1, use_cache=False))
    assert (result.completed, result.incomplete, result.failed) == (1, 0, 0)
