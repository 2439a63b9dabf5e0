"""What claims, campaigns, figures and pages name exists: scenarios, variants, axes and their values, cases, metrics."""

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from scpslab import analysis as results
from scpslab import scenario
from scpslab.analysis.claims import QUESTIONS, load_all
from scpslab.analysis.claims.load import Paper
from scpslab.analysis.claims.measured import same
from scpslab.analysis.collect import columns_by_workload, columns_of, shapes_of
from scpslab.analysis.figures.plots import load_all as load_recipes
from scpslab.scenario import planning
from scpslab.scenario.campaign import campaign_names, load_campaign
from scpslab.scenario.load import evidence_variants
from scpslab.scenario.model import axis_values

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).parents[2]
NAMES = scenario.names()
PAPERS = [*load_all(), *load_all(QUESTIONS)]
RECIPES = load_recipes()
TOPICS = sorted({name.partition("/")[0] for name in NAMES})
PAGES = [
    *(
        PROJECT / name
        for name in (
            "README.md",
            "CONTRIBUTING.md",
            "Makefile",
            "images/CONTRACT.md",
            "playbooks/fleet.yml",
            "bench/compare.py",
        )
    ),
    *sorted((PROJECT / "docs").rglob("*.md")),
    *sorted((PROJECT / "src/scpslab/cli").glob("*.py")),
    *sorted((PROJECT / "analysis").rglob("*.yaml")),
]
# A name that stands by itself: no part of a path of files.
NAMED = re.compile(
    rf"(?<![\w./-])((?:{'|'.join(TOPICS)})/[a-z0-9](?:[a-z0-9*?_-]|\[[^]\s]+\])*(?<!-))(?::([a-z][a-z0-9-]*))?(?![\w/])"
)


def fitting(patterns: Iterable[str]) -> list[str]:
    """The scenarios that patterns mean."""
    return [name for name in NAMES if any(fnmatchcase(name, pattern) for pattern in patterns)]


@cache
def axes(name: str) -> Mapping[str, frozenset[Any]]:
    """The axes of a scenario, each with all values that the whole or a variant for claims gives it."""
    found: dict[str, set[Any]] = {}
    for variant in evidence_variants(name):
        model = scenario.load(f"{name}:{variant}" if variant else name).model
        for axis, spec in model.sweep.items():
            found.setdefault(axis, set()).update(axis_values(spec))
    return {axis: frozenset(values) for axis, values in found.items()}


@cache
def columns(name: str) -> frozenset[str]:
    """The columns that results.csv of a scenario has besides its axes, and what `NAME_column` means there."""
    plans = list(shapes_of(planning.plan(cell) for cell in scenario.cells(scenario.load(name, ["repeats=1"]))))
    named = {f"{workload}_{metric}" for plan in plans for workload, metric in columns_by_workload(plan)}
    return frozenset({*results.table.BEFORE_AXES, *columns_of(plans), *named})


def unknown(names: list[str], condition: Mapping[str, Iterable[Any]]) -> Iterator[str]:
    """What no scenario of these has: columns, and values of axes."""
    for column, values in condition.items():
        with_axis = [name for name in names if column in axes(name)]
        if not with_axis:
            if not any(column in columns(name) for name in names):
                yield f"{column}: no axis and no column"
            continue
        known = {value for name in with_axis for value in axes(name)[column]}
        yield from (f"{column}={value}" for value in values if not any(same(_text(one), value) for one in known))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _as_several(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list | tuple) else (value,)


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.name)
def test_claims_name_cells_that_can_be_run_and_metrics_that_these_have(paper: Paper):
    wrong = []
    for name, series in paper.file.series.items():
        wrong += [f"{name}: {pattern}" for pattern in series.scenarios if not fitting([pattern])]
        wrong += [f"{name}: {what}" for what in unknown(fitting(series.scenarios), series.where)]
    for claim, check in ((one, check) for one in paper.file.claims for check in one.checks):
        along = {check.along: ()} if hasattr(check, "along") else {}
        for operand in check.operands():
            metric = operand.metric or getattr(check, "metric", None)
            names = fitting(paper.file.series[operand.series].scenarios)
            wrong += [f"{claim.id}: {what}" for what in unknown(names, {**along, **check.every, **operand.at})]
            if metric and not any(metric in columns(name) for name in names):
                wrong.append(f"{claim.id}: {metric}")
    assert wrong == []


@pytest.mark.parametrize(
    "name",
    [full for name in campaign_names() for full in (name, *(f"{name}:{one}" for one in load_campaign(name).variants))],
)
def test_campaigns_leave_nothing_out(name):
    """Every entry fits a scenario, every scenario has one of the variants asked for; that its settings fit, loading
    says.
    """
    campaign = load_campaign(name)
    assert campaign.left_out == ()
    for member in campaign.members:
        member.load()


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda recipe: recipe.name)
def test_figures_name_scenarios_axes_and_metrics_that_exist(recipe):
    names = fitting(recipe.applies_to)
    wrong = [pattern for pattern in recipe.applies_to if not fitting([pattern])]
    named = {
        axis: ()
        for axis in (getattr(recipe, "axis", None), getattr(recipe, "panels", None), *getattr(recipe, "series", ()))
        if axis
    }
    for condition in (named, getattr(recipe, "where", {}), *getattr(recipe, "cells", ())):
        wrong += unknown(names, {key: _as_several(value) for key, value in condition.items()})
    metric = getattr(recipe, "metric", None)
    assert wrong == []
    assert metric is None or any(metric in columns(name) for name in names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_pages_name_scenarios_and_variants_that_exist(page):
    claims = {f"{paper.name}/{claim.id}" for paper in PAPERS for claim in paper.file.claims}
    wrong = []
    for name, variant in NAMED.findall(page.read_text()):
        found = fitting([name])
        if name in claims or (found and not variant):
            continue
        if not any(variant in scenario.load(one).variants for one in found):
            wrong.append(f"{name}:{variant}" if variant else name)
    assert wrong == []
