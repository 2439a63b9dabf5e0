"""Tables and figures have the order in which the scenario names its values, whatever their letters are."""

import csv
import io

import pytest

from scpslab.analysis.figures.plots import load
from scpslab.analysis.figures.recipe import RECIPES
from scpslab.analysis.figures.source import Source
from scpslab.analysis.table import read_results, summarise

SWEEP = """kind: scenario
sweep:
  stack:
    cases: {reno: {}, bbr: {}}
  ber: {set: [links.hop.*.errors.ber], values: [1e-5, 0, 1e-6]}
"""
ORDER = [(stack, ber) for stack in ("reno", "bbr") for ber in ("1e-05", "0", "1e-06")]


@pytest.fixture
def swept(run_dir):
    (run_dir / "scenario.resolved.yaml").write_text(SWEEP)
    return run_dir


def test_groups_are_in_the_order_of_the_sweep(swept):
    assert [group.key for group in summarise(read_results(swept)).groups] == ORDER


def test_so_are_the_lines_that_are_printed(swept, scpslab):
    code, out, _ = scpslab("results", swept, "--format", "csv")
    assert code == 0
    assert [(row["stack"], row["ber"]) for row in csv.DictReader(io.StringIO(out))] == ORDER


def test_so_are_the_rows_of_points(swept):
    figure = load(RECIPES / "points.yaml").draw(Source(swept))
    said = [text.get_text().partition("  ")[0] for axes in figure.axes for text in axes.texts]
    assert said == [", ".join(key) for key in ORDER]


def test_values_that_the_scenario_does_not_name_come_last(swept):
    (swept / "scenario.resolved.yaml").write_text(SWEEP.replace("1e-5, 0, ", ""))
    keys = [group.key for group in summarise(read_results(swept), ("ber",)).groups]
    assert keys == [("1e-06",), ("0",), ("1e-05",)]


@pytest.mark.parametrize(
    "text", ["", "sweep: [\n", "sweep: 3\n", "sweep: {ber: 3, stack: {values: 5}}\n", "- a\n", "\x00"]
)
def test_without_a_scenario_that_can_be_read_they_stay(run_dir, text):
    (run_dir / "scenario.resolved.yaml").write_text(text)
    keys = [group.key for group in summarise(read_results(run_dir)).groups]
    assert keys == sorted(keys, key=lambda key: (key[0], float(key[1])))
