"""A scenario's checks against the rows of results.csv: which cells hold what was asked of them."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from scpslab.analysis.collect import OWN_COLUMNS, columns_by_workload, columns_of, pairs_of, shapes_of
from scpslab.analysis.metrics.base import Subject
from scpslab.analysis.run import RunCell, cell_folders, open_cell
from scpslab.analysis.statistics import ResultRow
from scpslab.analysis.table import read_results
from scpslab.core import units
from scpslab.core.choices import choice
from scpslab.core.errors import ResultError, ScenarioError
from scpslab.core.kinds import Registry
from scpslab.core.problems import Problem, UnfitError
from scpslab.documents.yaml_lines import read_value, text_of
from scpslab.plan import Plan
from scpslab.runs.run import FIGURES
from scpslab.scenario.model import Check, ScenarioFile

# A column's unit is the end of its name: which quantity that is, and base units of units.py in one of the column's.
WORDS = {"true": 1.0, "false": 0.0}
CELLS_NAMED = 3


@dataclass(frozen=True)
class CheckVerdict:
    """One check over all cells: its words, and the cells that do not hold it with the value found there."""

    words: str
    cells: int
    missed: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        if not self.missed:
            return f"check {self.words}: all {self.cells} cells"
        named = ", ".join(f"{cell}: {value}" for cell, value in self.missed[:CELLS_NAMED])
        more = ", …" if len(self.missed) > CELLS_NAMED else ""
        return f"check {self.words}: not {len(self.missed)} of {self.cells} cells ({named}{more})"


def evaluate(run_dir: Path, checks: Collection[Check]) -> list[CheckVerdict]:
    """The verdict on every check. A cell that did not complete does not hold it.

    Raises:
        ResultError: results.csv has no such column, or a bound is not in the column's unit.
    """
    rows = read_results(run_dir).rows
    cells = map(open_cell, cell_folders(run_dir)) if any(check.of for check in checks) else ()
    columns = {cell.id: columns_by_workload(cell.plan) for cell in cells}
    return [_verdict(check, rows, columns) for check in checks]


def misfits(scenario: ScenarioFile, plans: Collection[Plan]) -> Iterator[Problem]:
    """Axes with the name of a column, metrics that no cell of these plans can have, bounds in another unit or crossed;
    known before anything runs.
    """
    yield from _undeclared(plans)
    columns = columns_of(plans)
    for axis in scenario.sweep:
        if axis in OWN_COLUMNS or axis in columns:
            found = f'the axis "{axis}", which is a column of results.csv'
            yield Problem(("sweep", axis), found, "a name of its own", "Rename the axis.")
    of_workloads = {pair: None for plan in shapes_of(plans) for pair in columns_by_workload(plan)}
    shown = (*columns, *map("_".join, of_workloads))
    if scenario.metric is not None and scenario.metric not in shown:
        yield Problem(("metric",), f'"{scenario.metric}"', *choice(scenario.metric, shown))
    for index, check in enumerate(scenario.checks):
        own = dict.fromkeys(metric for workload, metric in of_workloads if workload == check.of)
        known = columns if check.of is None else tuple(own)
        if check.metric not in known:
            yield Problem(("checks", index, "metric"), f'"{check.metric}"', *choice(check.metric, known))
            continue
        bounds = []
        for key in ("at_least", "at_most"):
            try:
                bounds.append(_bound(check.metric, getattr(check, key)))
            except units.UnitError as error:
                yield replace(error.at(("checks", index, key), "Correct the bound."), subject=check.metric)
        match bounds:
            case [float() | int() as least, float() | int() as most] if least > most:
                found = f'"{check.at_most}", below at_least "{check.at_least}"'
                yield Problem(("checks", index, "at_most"), found, "more", "Correct a bound.")


def idle_recipes(path: Path, others: Iterable[str]) -> Iterator[str]:
    """A warning for each recipe beside a scenario that no scenario gets."""
    names = [*(file.stem for file in path.parent.glob("*.yaml")), *others]
    for file in sorted((path.parent / FIGURES).glob("*.yaml")):
        with suppress(ScenarioError, UnfitError, AttributeError):
            patterns = read_value(text_of(file, "a recipe")).get("applies_to") or names
            if not any(fnmatchcase(name, str(one)) for name in names for one in patterns):
                found = f"found {', '.join(map(str, patterns))}, which no scenario is called"
                yield f"warning: {file}: applies_to: {found}; expected a name such as {path.stem}. Correct it."


def _undeclared(plans: Collection[Plan]) -> Iterator[Problem]:
    """Kinds of the user's whose measures fail where no record says anything, or give columns that are not declared."""
    for plan in shapes_of(plans) if Registry.folders else ():
        cell = RunCell(Path(os.devnull), plan, "completed", "", None)
        for family, workload in pairs_of(plan):
            known = [one.name for one in family.columns]
            try:
                strange = [name for name in family.measure(Subject(cell, workload)) if name not in known]
                wrong = f"gives {', '.join(strange)}" if strange else ""
            except Exception as error:  # whatever somebody's code raises
                wrong = f"raises {type(error).__name__}: {error}"
            if wrong:
                at, found = plan.cell.heads.index(workload), f"{workload.kind}, whose metrics.py {wrong}"
                expected = f"the columns that it declares ({', '.join(known)}), None where no record says them"
                yield Problem(("workloads", at, "kind"), found, expected, "Correct its measure.")


def _verdict(check: Check, rows: Sequence[ResultRow], columns: Mapping[str, Mapping[Any, str]]) -> CheckVerdict:
    """`columns`: those of each cell by workload and metric, where a check names a workload."""
    names = [columns[row["cell"]].get((check.of, check.metric), "") if check.of else check.metric for row in rows]
    of_rows = list(zip(rows, names, strict=True))
    column = next((name for row, name in of_rows if name in row), None)
    if column is None:
        expected = "expected a column of results.csv (docs/columns.md lists them)"
        raise ResultError(f"checks: found the metric {check.metric}; {expected}. Correct the scenario.")
    try:
        least, most = _bound(column, check.at_least), _bound(column, check.at_most)
    except units.UnitError as error:
        raise ResultError(f"checks: {column}: {error}. Correct the scenario.") from error
    bounds = ((">=", check.at_least), ("<=", check.at_most))
    words = " and ".join(f"{column} {sign} {bound}" for sign, bound in bounds if bound is not None)
    missing = [(row, name) for row, name in of_rows if not _holds(row, name, least, most)]
    missed = [(row["cell"], row.get(name) or row["status"]) for row, name in missing]
    return CheckVerdict(words, len(rows), tuple(missed))


def _bound(column: str, bound: float | str | None) -> float | None:
    if not isinstance(bound, str):
        return bound
    if counted := units.of_metric(column):
        kind, base = counted
        return units.parse(kind, bound) / base
    raise units.UnitError(f'"{bound}"', "a plain number, for the column has no unit")


def _holds(row: ResultRow, column: str, least: float | None, most: float | None) -> bool:
    text = row.get(column)
    if not row.has_completed or not text:
        return False
    value = WORDS.get(text, row.numbers.get(column))
    return value is not None and (least is None or value >= least) and (most is None or value <= most)
