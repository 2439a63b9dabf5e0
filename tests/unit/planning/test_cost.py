"""Costs: sums over cells, no cell faster than itself, and storage only where it was measured."""

import shutil

import pytest

from scpslab import scenario
from scpslab.cli.plan import cost_text
from scpslab.scenario import planning
from scpslab.scenario.planning import Cost

NAME = "links/transfer"


def test_a_cost_is_the_sum_of_its_cells():
    plans = [planning.plan(cell) for cell in scenario.cells(scenario.load(NAME))]
    times = [planning.expected(plan).wall_s for plan in plans]
    cost = Cost.of(plans)
    assert cost.cells == len(plans)
    assert cost.busy_s == pytest.approx(sum(times))
    assert cost == Cost.of(plans[:1]) + Cost.of(plans[1:])
    assert cost.wall_s(1) == pytest.approx(sum(times))
    assert cost.wall_s(1000) == max(times)
    assert cost.memory_mib(3) - cost.memory_mib(2) == 2 * plans[0].network.memory_mib


def test_storage_is_said_where_it_was_measured(run_dir, tmp_path):
    assert "storage: not known" in cost_text(NAME, [], runs=tmp_path / "none")
    (run_dir / "manifest.json").write_text(f'{{"format": 1, "scenario": "{NAME}"}}')
    for cell in (run_dir / "cells").iterdir():
        shutil.rmtree(cell)
        cell.mkdir()
        (cell / "plan.json").write_bytes(bytes(2_000_000))
    assert "storage: 6 MB for 3 of the 3 cells" in cost_text(NAME, [], runs=run_dir.parent)
    (run_dir / "manifest.json").write_text("damaged")
    assert "storage: not known" in cost_text(NAME, [], runs=run_dir.parent)
    assert "3 cells in 1 scenario," in cost_text(NAME, [], runs=run_dir.parent)


def test_a_campaign_costs_what_its_scenarios_cost(tmp_path):
    runs = f"- {{scenario: {NAME}}}\n- {{scenario: links/round-trip, variant: [test]}}\n"
    (file := tmp_path / "both.yaml").write_text(f"kind: campaign\nversion: 1\ntitle: Two\nruns:\n{runs}")
    both, *one = (cost_text(str(name), [], runs=tmp_path) for name in (file, NAME, "links/round-trip:test"))
    assert "in 2 scenarios" in both
    assert int(both.split()[0]) == sum(int(text.split()[0]) for text in one)


def test_what_ends_with_the_required_workloads_counts_until_then(cells):
    flow = "  - {kind: iperf3, name: flow, from: h1, to: h2, duration: DURATION, required: false, start: 0 s}\n"
    late = "  - {kind: ping, name: late, from: h1, to: h2, count: 1, required: false, start: 900 s}\n"
    text = "kind: scenario\nversion: 1\ntopology: point_to_point\nworkloads:\n" + flow + late
    text += "  - {kind: bulk, name: transfer, from: h1, to: h2, size: 1 MB}\n"
    short, long = (
        planning.expected(planning.plan(*cells(text.replace("DURATION", f"{seconds} s")))) for seconds in (60, 600)
    )
    assert short.wall_s == pytest.approx(long.wall_s, rel=0.01)
