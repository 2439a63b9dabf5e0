"""Checks of a scenario against results.csv."""

import pytest
from rich.console import Console

from scpslab import scenario
from scpslab.analysis.checks import evaluate, misfits
from scpslab.cli import run
from scpslab.core.errors import ResultError
from scpslab.running.runner import RunResult
from scpslab.scenario import planning
from scpslab.scenario.model import Check
from tests import golden
from tests.cases import document
from tests.runs import write_cell, write_manifest

ROWS = """scenario,topology,cell,status,reason,transfer_s,payload_match,second_transfer_s
,,a,completed,,10.5,true,1.0
,,b,completed,,20.5,false,2.0
,,c,incomplete,,,,
"""


@pytest.fixture
def run_dir(tmp_path):
    (tmp_path / "results.csv").write_text(ROWS)
    return tmp_path


def verdict(run_dir, **keys):
    (found,) = evaluate(run_dir, [Check(**keys)])
    return found


def test_a_bound_may_have_a_unit(run_dir):
    """20 s is 20 in a column of seconds; a cell that did not complete does not hold it."""
    found = verdict(run_dir, metric="transfer_s", at_most="20 s")
    assert found.missed == (("b", "20.5"), ("c", "incomplete"))
    assert str(found) == "check transfer_s <= 20 s: not 2 of 3 cells (b: 20.5, c: incomplete)"


@pytest.mark.parametrize(
    ("keys", "missed"),
    [
        ({"metric": "payload_match", "at_least": 1}, ["b", "c"]),
        ({"metric": "second_transfer_s", "at_least": 0.5, "at_most": 5}, ["c"]),
    ],
    ids=["yes counts as one", "a column of the second workload"],
)
def test_cells_that_miss_a_bound_are_named(run_dir, keys, missed):
    assert [cell for cell, _ in verdict(run_dir, **keys).missed] == missed


@pytest.mark.parametrize(
    "keys",
    [
        {"metric": "wrong", "at_least": 1},
        {"metric": "transfer_s", "at_least": "5 MB"},
        {"metric": "payload_match", "at_least": "5 s"},
    ],
)
def test_what_cannot_be_checked_is_said(run_dir, keys):
    with pytest.raises(ResultError, match="expected"):
        verdict(run_dir, **keys)


def test_a_check_that_cannot_be_made_does_not_keep_the_figures(golden, monkeypatch, capsys):
    monkeypatch.setattr(run.figures, "draw", lambda folder, warn: [folder / "figures" / "drawn.png"])
    result = RunResult(golden, 1, 0, 0, (Check(metric="wrong", at_least=1),))
    assert run._show(result, Console(width=200)) is False
    said = capsys.readouterr()
    assert "drawn.png" in said.out
    assert "warning: checks: found the metric wrong; expected a column of results.csv" in said.err


TWO = document("scenario of two transfers")


def test_of_means_the_column_that_the_workload_has_in_a_cell(cells, tmp_path):
    """Where the first is off, the second alone has the metric, and the bare name."""
    rows = ["scenario,topology,cell,status,reason,transfer_s,transfer_transfer_s,second_transfer_s"]
    for cell, numbers in zip(cells(TWO), (",9,1", "1,,"), strict=True):
        write_cell(tmp_path / "cells" / cell.id, planning.plan(cell))
        rows.append(f',,"{cell.id}",completed,,{numbers}')
    write_manifest(tmp_path, "two")
    (tmp_path / "results.csv").write_text("\n".join([*rows, ""]))
    assert verdict(tmp_path, metric="transfer_s", of="second", at_most=5).missed == ()
    assert verdict(tmp_path, metric="transfer_s", of="transfer", at_most=5).missed == (
        ("first=both,r1", "9"),
        ("first=one,r1", "completed"),
    )
    # With two transfers in a cell, a check that names none has no number there.
    assert verdict(tmp_path, metric="transfer_s", at_most=20).missed == (("first=both,r1", "completed"),)


@golden.each("checks")
def test_a_metric_that_its_workload_has_not_is_refused(case, load):
    loaded = load(f"{TWO}checks: [{case}]\n")
    planned = planning.plans(scenario.cells(loaded))
    (problem,) = misfits(loaded.model, planned.values())
    assert problem.at == ("checks", 0, "metric")
    case.hold(problem)
