"""Scenarios of `scpslab new` run as they are: every network once, and every traffic once."""

from __future__ import annotations

import pytest

from scpslab.scenario import fresh
from tests.lab.conftest import run_text

pytestmark = pytest.mark.lab
CASES = [(topology, "bulk") for topology in fresh.networks()] + [
    ("point_to_point", kind) for kind in fresh.workload_kinds() if kind != "bulk"
]


@pytest.mark.parametrize(("topology", "workload"), CASES)
def test_a_new_scenario_completes(tmp_path, topology, workload):
    size = "20 kB" if fresh.has_size(workload) else None
    choices = fresh.Choices("mine", topology, workload, stacks=["cubic"], bers=["0"], size=size, repeats=1)
    result = run_text(tmp_path, fresh.text(choices))
    assert (result.completed, result.incomplete, result.failed) == (1, 0, 0)
