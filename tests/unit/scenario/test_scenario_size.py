"""Scenarios that nobody can run are refused before anything of them is built."""

import time

import pytest

from scpslab import scenario
from tests import golden
from tests.cases import refusal

pytestmark = pytest.mark.slow


def test_a_sweep_of_ten_thousand_million_cells_is_refused_at_once(told):
    axes = ", ".join(f"a{axis}: {{set: [seed], values: [{', '.join(map(str, range(10)))}]}}" for axis in range(10))
    loaded = scenario.load("links/round-trip:test", [f"sweep={{{axes}}}", "repeats=1"])
    started = time.process_time()
    told("what no machine can do: cells", "a sweep", scenario.cells, loaded)
    assert time.process_time() - started < 1


@golden.each("what no machine can do")
def test_what_no_machine_can_do_is_refused(case):
    case.hold(refusal(lambda: scenario.cells(scenario.load("links/transfer", [case]))))
