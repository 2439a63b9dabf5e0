"""Whose a column is: names in the project's claims, recipes and formulas mean one workload's numbers."""

import re
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest
import yaml

from scpslab import plan as plans
from scpslab import scenario
from scpslab.analysis.collect import columns_by_workload, columns_of
from scpslab.analysis.lost_packets import CAUSES
from scpslab.analysis.metrics.families import families
from scpslab.analysis.table import read_results, report, summarise
from scpslab.core.errors import ScenarioError
from scpslab.lab.packets import OTHERS
from scpslab.plan import Plan
from scpslab.scenario import planning
from scpslab.scenario.consistency import OTHER_OWNERS
from tests.runs import write_manifest

PROJECT = Path(__file__).parents[3]
SCENARIOS = [path for path in sorted((PROJECT / "scenarios").rglob("*.yaml")) if path.parent.name != "campaigns"]
# A direction's losses end as those of a program's own packets do.
OF_A_LINK = re.compile(r"_lost_\w+_packets$")
# What formulas read beside results.csv.
FOR_FORMULAS = {"resends", "resend_causes", "resend_frames", *(f"resends_{cause}" for cause in CAUSES)}


def first_plan(path: Path) -> Plan:
    """The plan of a scenario's first cell."""
    return planning.plan(next(iter(scenario.cells(scenario.load(str(path))))))


def shapes(path: Path) -> Iterator[Plan]:
    """A plan of each set of workloads that the cells of a scenario have."""
    known = set()
    for cell in scenario.cells(scenario.load(str(path))):
        names = tuple((workload.name, workload.kind) for workload in cell.model.workloads)
        if names not in known:
            known.add(names)
            yield planning.plan(cell)


@cache
def names_of(name: str) -> frozenset[str]:
    """What columns of workloads may be called in a scenario of the project, in one of its cells or in several."""
    return frozenset(
        one
        for plan in shapes(PROJECT / "scenarios" / f"{name}.yaml")
        for place, column in columns_by_workload(plan).items()
        for one in (column, "_".join(place))
    )


def asked() -> dict[str, set[str]]:
    """The columns of workloads that claims and recipes of the project name, by scenario."""
    found: dict[str, set[str]] = {}
    every = {column.name for family in families() for column in family.columns}
    for path in sorted((PROJECT / "analysis").rglob("*.yaml")):
        said = yaml.safe_load(path.read_text())
        series = said.get("series", {}) if said.get("kind") == "claims" else {}
        for name, one in series.items() if isinstance(series, dict) else ():
            metrics = {
                operand.get("metric") or check["metric"]
                for claim in said["claims"]
                for check in claim.get("checks", ())
                for operand in operands(check)
                if operand["series"] == name and (operand.get("metric") or check.get("metric"))
            }
            for pattern in one["scenarios"]:
                found.setdefault(pattern, set()).update(metrics)
        for pattern in said.get("applies_to", []):
            found.setdefault(pattern, set()).update({said["metric"]} if said.get("metric") else ())
    # Other columns are those of links, services and probes.
    of_workloads = {
        name: {one for one in mine if any(map(one.endswith, every)) and not OF_A_LINK.search(one)}
        for name, mine in found.items()
    }
    return {name: mine for name, mine in of_workloads.items() if mine}


def operands(check: dict) -> Iterator[dict]:
    """The parts of a check that name a series."""
    for value in check.values():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict) and "series" in one:
                yield one
    for key in ("of", "to", "minus"):
        if isinstance(check.get(key), str):
            yield {"series": check[key]}


@pytest.mark.parametrize("pattern", sorted(asked()))
def test_claims_and_recipes_name_columns_that_one_workload_has(pattern):
    """A name that several workloads of all cells have would be none: nobody reads another one's numbers."""
    paths = [path for path in SCENARIOS if fnmatchcase(f"{path.parent.name}/{path.stem}", pattern)]
    for path in paths:
        unknown = asked()[pattern] - names_of(f"{path.parent.name}/{path.stem}")
        assert unknown == set(), path


def formulas() -> dict[tuple[str, str], set[str]]:
    """The columns that the formulas of each assignment name, by scenario."""
    found: dict[tuple[str, str], set[str]] = {}
    for marking in sorted((PROJECT / "assignments").glob("*/instructor/marking.yaml")):
        for name, column in re.findall(r'\(\s*"([\w-]+)",\s*"([\w]+)"', marking.read_text()):
            found.setdefault((marking.parents[1].name, name), set()).add(column)
    return found


@pytest.mark.parametrize("place", formulas(), ids="-".join)
def test_formulas_of_assignments_name_columns_that_their_cells_have(place):
    assignment, name = place
    try:
        plan = first_plan(PROJECT / "assignments" / assignment / f"{name}.yaml")
    except ScenarioError:
        pytest.skip("it needs a student's program, or is in the instructor's part")
    known = {*columns_of([plan]), *map("_".join, columns_by_workload(plan)), *FOR_FORMULAS, "cell", "status"}
    assert formulas()[place] <= known


def test_a_column_has_the_name_with_its_workload_too_and_a_table_says_whose_it_is(run_dir):
    write_manifest(run_dir, "fig04-golden")
    for cell in (run_dir / "cells").iterdir():
        plan = plans.parse((cell / "plan.json").read_bytes())
        (transfer,) = plan.cell.workloads
        other = replace(transfer, name="second", port=5009)
        (cell / "plan.json").write_text(plans.text(replace(plan, cell=replace(plan.cell, workloads=(transfer, other)))))
    both = read_results(run_dir)
    assert {"transfer_user_s", "second_user_s"} <= set(both.metrics)
    assert "user_s" not in both.names
    assert summarise(both).metrics[:1] == ("transfer_transfer_s",)


def test_the_only_owner_of_a_column_may_be_named(run_dir):
    results = read_results(run_dir)
    assert "transfer_user_s" not in results.metrics
    short, long = (summarise(results, metrics=[name]) for name in ("user_s", "transfer_user_s"))
    for one, other in zip(short.groups, long.groups, strict=True):
        assert one.means["user_s"] == other.means["transfer_user_s"]
    assert not any("of transfer" in note for note in report(short).notes)


@pytest.mark.parametrize("name", OTHERS)
def test_nobody_has_a_name_of_the_record_s_own(name, tmp_path):
    assert name in OTHER_OWNERS
    workload = f"{{kind: ping, name: {name}, from: h1, to: h2}}"
    said = f"kind: scenario\nversion: 1\ntitle: One\ntopology: point_to_point\nworkloads: [{workload}]\n"
    (tmp_path / "mine.yaml").write_text(said)
    with pytest.raises(ScenarioError, match=f'name: found (the name )?"{name}"'):
        scenario.load(str(tmp_path / "mine.yaml"))
