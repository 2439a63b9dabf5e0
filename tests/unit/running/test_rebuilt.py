"""Archived plans held against the archived scenario."""

from dataclasses import replace

import pytest

from scpslab import scenario
from scpslab.running.verify import contradictions
from scpslab.runs.archive import ArchivedRun, RunDigest
from scpslab.scenario import planning
from scpslab.scenario.load import resolved_yaml
from tests import golden


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
    golden.Case("contradictions of an archive", "a changed plan").hold("\n".join(found))


def test_a_scenario_that_was_changed_is_found_in_every_cell(archived):
    resolved = archived.resolved.replace("4000000", "4000001").replace("20000 B", "20001 B")
    found = contradictions(replace(archived, resolved=resolved))
    golden.Case("contradictions of an archive", "a changed scenario").hold("\n".join(found))


def test_a_cell_that_is_missing_is_named(archived):
    (name, plan), _ = archived.plans.items()
    found = contradictions(replace(archived, plans={name: plan}))
    golden.Case("contradictions of an archive", "a missing cell").hold("\n".join(found))


def test_a_scenario_that_cannot_be_planned_is_said_with_its_lines(archived):
    found = contradictions(replace(archived, resolved=archived.resolved.replace("topology: fy97", "topology: fy79")))
    golden.Case("contradictions of an archive", "no plan").hold("\n".join(found))
