"""The time of a cell from manifests: its own, else of its scenario, else of others, else of its plan alone."""

import json

import pytest

from scpslab import scenario
from scpslab.running.measured import ALIKE, EXACT, OTHERS, PLAN, SAMPLE, Measured
from scpslab.scenario import planning
from scpslab.scenario.planning import expected

NAME, VARIANT = "links/transfer", "links/transfer:variant"


@pytest.fixture
def runs(tmp_path):
    """The folder of runs."""
    return tmp_path / "runs"


@pytest.fixture
def measured(run_fake, runs):
    """A run whose cells took what a function of their number says."""

    def run(took=lambda number: 2.0, repeats=1, **changes):
        folder = run_fake(overrides=[f"repeats={repeats}"], use_cache=False).folder
        file = folder / "manifest.json"
        manifest = json.loads(file.read_text())
        manifest["took_s"] = {cell: took(number) for number, cell in enumerate(sorted(manifest["cells"]))}
        file.write_text(json.dumps(manifest | changes))
        return folder

    return run


def plans(*settings):
    return {cell.id: planning.plan(cell) for cell in scenario.cells(scenario.load(NAME, settings))}


def only(counts):
    return {source: number for source, number in counts.items() if number}


def test_a_cell_takes_what_it_took(measured, runs):
    measured(took=lambda number: 10.0 + number)
    times = Measured.of(runs)
    assert {cell: times.wall_s(NAME, plan) for cell, plan in plans("repeats=1").items()} == {
        cell: 10.0 + number for number, cell in enumerate(sorted(plans("repeats=1")))
    }
    assert only(times.counts) == {EXACT: 3}


def test_a_run_says_by_itself_how_long_its_cells_took(run_fake, runs):
    run_fake(overrides=["repeats=1"])
    times = Measured.of(runs)
    assert all(0 <= times.wall_s(NAME, plan) < 5 for plan in plans("repeats=1").values())
    assert only(times.counts) == {EXACT: 3}


def test_unknown_cells_have_the_pace_of_their_scenario_then_of_others_then_none(measured, runs):
    known = plans("repeats=1")
    total = sum(expected(plan).wall_s for plan in known.values())
    measured(took=lambda number: total)
    (new,) = [plan for cell, plan in plans("repeats=2").items() if cell not in known][:1]
    times = Measured.of(runs)

    # Three cells took as long as all three were expected to take: three times as long.
    assert times.wall_s(VARIANT, new) == pytest.approx(3 * expected(new).wall_s)
    assert times.wall_s("fy97/fig04", new) == pytest.approx(3 * expected(new).wall_s)
    assert only(times.counts) == {ALIKE: 1, OTHERS: 1}
    alone = Measured.of(runs / "nothing")
    assert alone.wall_s(NAME, new) == expected(new).wall_s
    assert only(alone.counts) == {PLAN: 1}


def test_the_pace_is_that_of_cells_from_everywhere_in_the_run(measured, runs):
    cells = 3 * 40
    measured(took=lambda number: 4.0 if number < cells / 2 else 8.0, repeats=40)
    (new,) = list(plans("repeats=41").values())[40:41]
    every = [expected(plan).wall_s for plan in plans("repeats=40").values()]
    pace = Measured.of(runs).wall_s(VARIANT, new) / expected(new).wall_s
    assert pace == pytest.approx(6.0 / (sum(every) / cells), rel=0.05)
    assert cells > SAMPLE


@pytest.mark.parametrize(
    ("changes", "source"),
    [
        ({"engine": "host"}, PLAN),
        ({"engine_hashes": ["another kernel"]}, ALIKE),
        ({"engine_hashes": "fake"}, ALIKE),
        ({"engine_hashes": [7, None]}, ALIKE),
        ({"cells": {"delay=1ms,r1": 3}}, ALIKE),
    ],
)
def test_what_is_damaged_of_other_parts_or_in_real_time_is_no_time_of_a_cell(measured, runs, changes, source):
    measured(**changes)
    times = Measured.of(runs)
    for plan in plans("repeats=1").values():
        assert times.wall_s(NAME, plan) > 0
    assert only(times.counts) == {source: 3}


@pytest.mark.parametrize("bad", [-1, "long", None, 1e12])
def test_a_time_that_is_none_does_not_count(measured, runs, bad):
    measured(took=lambda number: bad if number == 0 else 5.0)
    times = Measured.of(runs)
    found = [times.wall_s(NAME, plan) for _, plan in sorted(plans("repeats=1").items())]
    assert found[1:] == [5.0, 5.0]
    assert only(times.counts) == {EXACT: 2, ALIKE: 1}


def test_a_run_that_cannot_be_read_costs_nobody_else_his_times(measured, runs):
    folder = measured()
    (runs / "broken").mkdir()
    (runs / "broken" / "manifest.json").write_text("{")
    for plan in folder.glob("cells/*/plan.json"):
        plan.unlink()
    times = Measured.of(runs)
    assert [times.wall_s(NAME, plan) for plan in plans("repeats=1").values()] == [2.0] * 3
    (new,) = list(plans("repeats=2").values())[1:2]
    assert times.wall_s(NAME, new) == expected(new).wall_s
    assert only(times.counts) == {EXACT: 3, PLAN: 1}


def test_a_cell_of_several_runs_takes_their_mean(measured, runs):
    folder = measured(took=lambda number: 2.0)
    folder.rename(runs / "first")
    manifest = json.loads((measured(took=lambda number: 4.0) / "manifest.json").read_text())
    assert manifest["took_s"]
    found = {Measured.of(runs).wall_s(NAME, plan) for plan in plans("repeats=1").values()}
    assert found == {3.0}
