"""Archived plans held against the archived scenario."""

from dataclasses import replace

import pytest

from scpslab import scenario
from scpslab.running.verify import contradictions
from scpslab.runs.archive import ArchivedRun, RunDigest
from scpslab.scenario import planning
from scpslab.scenario.load import resolved_yaml


@pytest.fixture
def archived():
    """A run as an archive has it, of two cells."""
    two = ["repeats=1", "sweep.ber.values=[1e-5]", 'sweep.stack=["cubic", "bbr"]', 'sweep.errors=["independent"]']
    loaded = scenario.load("fy97/fig04", two)
    digest = RunDigest(run="fig04-1", scenario=loaded.name, engine="virtual", seed=loaded.seed, files={}, inputs={})
    plans = {cell.id: planning.plan(cell) for cell in scenario.cells(loaded)}
    return ArchivedRun(digest, plans, resolved_yaml(loaded), {})


def test_plans_of_the_scenario_contradict_nothing(archived):
    assert contradictions(archived) == []


def test_a_plan_that_was_changed_is_named_with_both_values(archived):
    name = next(iter(archived.plans))
    plan = archived.plans[name]
    changed = replace(
        plan, cell=replace(plan.cell, workloads=(replace(plan.cell.workloads[0], bytes_=77), *plan.cell.workloads[1:]))
    )

    found = contradictions(replace(archived, plans=archived.plans | {name: changed}))

    assert found == [
        f"cell {name}: cell.workloads[0].bytes: found 77; the scenario gives {plan.cell.workloads[0].bytes_}"
    ]


def test_a_scenario_that_was_changed_is_found_in_every_cell(archived):
    found = contradictions(
        replace(archived, resolved=archived.resolved.replace("4000000", "4000001").replace("20000 B", "20001 B"))
    )

    assert len(found) == len(archived.plans)
    assert all("workloads[0].bytes" in line for line in found)


def test_a_cell_that_is_missing_is_named(archived):
    first, second = archived.plans
    fewer = replace(archived, plans={first: archived.plans[first]})

    assert contradictions(fewer) == [f"cell {second}: found no plan; the scenario gives one"]


def test_a_scenario_that_cannot_be_planned_is_said_with_its_lines(archived):
    found = contradictions(replace(archived, resolved=archived.resolved.replace("topology: fy97", "topology: fy79")))

    assert len(found) == 1
    assert "the scenario cannot be planned: fig04-1/scenario.resolved.yaml" in found[0]
    assert "fy79" in found[0]
