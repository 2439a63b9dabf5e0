"""Scenarios that nobody can run are refused before anything of them is built."""

import time

import pytest

from scpslab import scenario
from scpslab.scenario.cells import MOST_CELLS
from tests.cases import each, refusal

pytestmark = pytest.mark.slow


def test_a_sweep_of_ten_thousand_million_cells_is_refused_at_once():
    axes = ", ".join(f"a{axis}: {{set: [seed], values: [{', '.join(map(str, range(10)))}]}}" for axis in range(10))
    loaded = scenario.load("links/round-trip:test", [f"sweep={{{axes}}}", "repeats=1"])
    started = time.process_time()
    said = refusal(scenario.cells, loaded)
    assert time.process_time() - started < 1
    assert "found 10000000000 cells (10 a0 x 10 a1 " in said
    assert f"expected at most {MOST_CELLS}" in said
    assert "--set sweep.AXIS=" in said


@each(
    "override says",
    """
limits.memory=2000 GB | limits.memory
probes=[{kind: capture, node: h1, filter: '-w /x'}] | would take for an option
workloads=[{kind: background, name: c, from: h1, to: h2, max_rate: 8 kbit/s, redraw: 1 ns}] | Redraw less often
workloads.transfer.name=events | found
""",
)
def test_what_no_machine_can_do_is_refused(override, says):
    assert says in refusal(lambda: scenario.cells(scenario.load("links/transfer", [override])))
