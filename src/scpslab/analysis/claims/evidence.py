"""The rows of several runs that a claim can draw on.

Two runs may hold the same cell (a demo and the whole of a scenario): it counts once, from the run that was named first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from scpslab.analysis.claims.model import Series
from scpslab.analysis.figures.source import axis_number
from scpslab.analysis.run import manifest_of
from scpslab.analysis.statistics import ResultRow
from scpslab.analysis.table import read_results
from scpslab.documents.quantities import AxisValue, value_text
from scpslab.scenario.load import evidence_variants
from scpslab.scenario.paths import changes_conditions

ENDED = ("completed", "incomplete")


@dataclass(frozen=True)
class EvidenceRow:
    """One cell: where it is from, the columns that say which it is, and its line of results.csv.

    `counts`: whether its variant is evidence for claims.
    """

    run: Path
    scenario: str
    counts: bool
    axes: tuple[tuple[str, str], ...]
    values: ResultRow

    @cached_property
    def identity(self) -> tuple[object, ...]:
        """The same for the same cell in two runs."""
        return (self.scenario, self.axes, self.values["repeat"], self.values["seed"])


class Evidence:
    """All rows of some runs, in the order in which the runs were named."""

    def __init__(self, rows: Iterable[EvidenceRow], changed: Mapping[Path, tuple[str, ...]] | None = None) -> None:
        self.rows = tuple(rows)
        # The runs with other conditions than their scenario's, and the settings that changed them.
        self.changed = dict(changed or {})
        self._chosen: dict[tuple[object, ...], tuple[EvidenceRow, ...]] = {}

    @classmethod
    def of_runs(cls, runs: Sequence[Path], warn: Callable[[str], None] = lambda _: None) -> Evidence:
        """Reads results.csv of every run; `warn` as for `collect`.

        Raises:
            ResultError: a run that cannot be read.
        """
        settings = {run: tuple(filter(changes_conditions, manifest_of(run).settings)) for run in runs}
        changed = {run: changes for run, changes in settings.items() if changes}
        return cls((row for run in runs for row in _rows(run, warn, is_changed=run in changed)), changed)

    def select(
        self, series: Series, at: Mapping[str, tuple[AxisValue, ...]], metric: str | None = None
    ) -> tuple[EvidenceRow, ...]:
        """The rows of a series whose columns also have the values `at`, each cell once; failed cells say nothing and
        are left out.

        Of a cell that is in several runs the first row counts that has the metric: one run may have had probes that
        another had not. A condition on a metric lets a cell without that metric pass when it did not complete: it has
        no metrics at all.
        """
        rows: dict[tuple[object, ...], EvidenceRow] = {}
        for row in self._of_series(series):
            if _fits(row, at) and (row.identity not in rows or _has_only(row, rows[row.identity], metric)):
                rows[row.identity] = row
        return tuple(rows.values())

    def _of_series(self, series: Series) -> tuple[EvidenceRow, ...]:
        key = (series.scenarios, tuple(sorted(series.where.items())))
        if key not in self._chosen:
            self._chosen[key] = tuple(row for row in self.rows if _is_of(row, series))
        return self._chosen[key]


def scenario_of(run: Path) -> str:
    """The run's scenario with its variant; "" where the manifest has none."""
    return manifest_of(run).scenario or ""


def _rows(run: Path, warn: Callable[[str], None], *, is_changed: bool) -> Iterable[EvidenceRow]:
    results = read_results(run, warn=warn)
    asked, _, asked_variant = scenario_of(run).partition(":")
    # Of a scenario of a user's own, only its run says whether its cells are evidence.
    stated = manifest_of(run).evidence
    for values in results.rows:
        # Rows of an earlier version have the variant with the name; now the manifest has it.
        scenario, _, variant = values["scenario"].partition(":")
        variant = variant or (asked_variant if asked == scenario else "")
        is_evidence = variant in evidence_variants(scenario) if stated is None else stated
        yield EvidenceRow(
            run,
            scenario,
            is_evidence and not is_changed,
            tuple(sorted((name, values[name]) for name in results.axes)),
            values,
        )


def _is_of(row: EvidenceRow, series: Series) -> bool:
    return series.has(row.scenario) and row.counts and row.values["status"] in ENDED and _fits(row, series.where)


def _has_only(row: EvidenceRow, other: EvidenceRow, metric: str | None) -> bool:
    """Whether a row has the metric and the other one of the same cell has not."""
    return metric in row.values.numbers and metric not in other.values.numbers


def _fits(row: EvidenceRow, at: Mapping[str, tuple[AxisValue, ...]]) -> bool:
    return all(_has(row, name, wanted) for name, wanted in at.items())


def _has(row: EvidenceRow, name: str, wanted: tuple[AxisValue, ...]) -> bool:
    text = row.values.get(name)
    if not text:
        # Nothing in a column that some row has: a metric of a transfer that did not complete.
        return text == "" and row.values["status"] == "incomplete"
    return any(same(text, value) for value in wanted)


def same(found: str, wanted: AxisValue) -> bool:
    """Whether a column's text states the value that a claim names: the same text, or the same number, with or without
    unit.
    """
    text = value_text(wanted)
    if found == text:
        return True
    number, meant = axis_number(found), axis_number(text)
    return number is not None and meant is not None and math.isclose(number, meant, rel_tol=1e-9)
