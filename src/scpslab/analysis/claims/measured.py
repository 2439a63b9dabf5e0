"""The rows of several runs that a claim can draw on, and what the checks of claims measure in them: one function for
each kind of check, one line each in KINDS.

Two runs may hold the same cell (a demo and the whole of a scenario): it counts once, from the run that was named first.
All kinds of checks but two give one number with its interval. `order` and `trend` compare means with each other, in
steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from scpslab.analysis import statistics
from scpslab.analysis.claims import model
from scpslab.analysis.claims.model import Series
from scpslab.analysis.figures.source import axis_number
from scpslab.analysis.run import manifest_of, open_cell
from scpslab.analysis.statistics import ResultRow
from scpslab.analysis.table import read_results
from scpslab.core.errors import ResultError
from scpslab.core.names import BadName
from scpslab.documents.quantities import AxisValue
from scpslab.documents.yaml_lines import value_text
from scpslab.plan.chances import chances
from scpslab.runs import RunFolder
from scpslab.scenario.load import evidence_variants
from scpslab.scenario.paths import changes_conditions

ENDED = ("completed", "incomplete")
# The engine in which chance is only what is drawn.
VIRTUAL = "virtual"


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

    @cached_property
    def is_fixed(self) -> bool:
        """Whether no chance is in the cell, so that all its repeats are the same; False where its plan is not there."""
        with suppress(BadName, ResultError):
            files = RunFolder(self.run).cell(self.values.get("cell", ""))
            is_there = files.plan.is_file() and manifest_of(self.run).engine == VIRTUAL
            return is_there and not chances(open_cell(files.path).plan)
        return False


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


SIGNIFICANT = 0.05
PERCENT = 100
# Along the axis, the upper end of a ratio's interval crosses the threshold first, and the lower end last.
ENDS = ("number", "high", "low")


class MissingError(Exception):
    """A check lacks cells or values; the text names them."""


@dataclass(frozen=True)
class Step:
    """From one mean to another.

    `p` is None if a mean has no spread; `is_needed`: the relation needs this step to be certain.
    """

    rise: float
    p: float | None
    is_needed: bool = True


@dataclass(frozen=True)
class Measured:
    """The number that a check gives, in words too; where something is missing, only the text, which names it.

    `agrees`: a test with the paper's counts finds no difference; None: it cannot find one. `steps`: from each mean to
    the next, in the order in which a claim says they rise; the number is then the last divided by the first, None where
    that is 0.
    """

    text: str
    estimate: statistics.Estimate | None = None
    agrees: bool | None = False
    steps: tuple[Step, ...] = ()
    is_missing: bool = False


@dataclass(frozen=True)
class Measurements:
    """The cells of an operand: values of the metric over the completed ones, and how many ended how.

    `is_exact`: the one value has no chance in it.
    """

    values: tuple[float, ...]
    completed: int
    incomplete: int
    is_exact: bool = False

    @property
    def ended(self) -> int:
        """Transfers that came to an end, one way or the other."""
        return self.completed + self.incomplete


@dataclass(frozen=True)
class Cells:
    """The cells that a check can look at: of the series of a file, in columns that have the values `at`."""

    file: model.ClaimsFile
    evidence: Evidence
    at: Mapping[str, tuple[AxisValue, ...]]

    def rows(self, operand: model.Operand, metric: str | None = None) -> tuple[EvidenceRow, ...]:
        """The rows of an operand, each cell once."""
        series = self.file.series[operand.series]
        return self.evidence.select(series, {**operand.at, **self.at}, operand.metric or metric)

    def sample(self, operand: model.Operand, metric: str | None) -> Measurements:
        """The values of the operand's metric, or of `metric`."""
        name, rows = operand.metric or metric, self.rows(operand, metric)
        done = [row for row in rows if row.values.has_completed]
        found = [row for row in done if name in row.values.numbers]
        values = tuple(row.values.numbers[name] for row in found if name)
        is_exact = len(found) == 1 and found[0].is_fixed
        return Measurements(values, len(done), len(rows) - len(done), is_exact)

    def samples(self, operands: Sequence[model.Operand], metric: str) -> list[Measurements]:
        """The values of all operands.

        Raises:
            MissingError: an operand has none.
        """
        samples = [self.sample(operand, metric) for operand in operands]
        for operand, sample in zip(operands, samples, strict=True):
            if not sample.values:
                lacks = f"; {sample.ended} cells ended, without {operand.metric or metric}" if sample.ended else ""
                raise MissingError(self.absent(operand) + lacks)
        return samples

    def along(self, operand: model.Operand, axis: str) -> list[tuple[float, Cells]]:
        """The numbers that an axis has among the operand's cells, rising, with the cells there."""
        texts = {row.values.get(axis, "") for row in self.rows(operand)}
        numbers = sorted((number, text) for text in texts if (number := axis_number(text)) is not None)
        return [(number, replace(self, at={**self.at, axis: (text,)})) for number, text in numbers]

    def absent(self, operand: model.Operand) -> str:
        """The cells of an operand, as cells that are not there."""
        series = self.file.series[operand.series]
        wanted = {**series.where, **operand.at, **self.at}
        columns = [f"{name}={'|'.join(str(value).lower() for value in values)}" for name, values in wanted.items()]
        return " ".join(["no cells of", ", ".join(series.scenarios), *columns])


def measure(check: Any, cells: Cells) -> Measured:
    """What a check measures in these cells."""
    try:
        return KINDS[check.kind](check, cells)
    except MissingError as error:
        return Measured(str(error), is_missing=True)


def value(check: model.Value, cells: Cells) -> Measured:
    """The mean of a metric."""
    samples = cells.samples([check.of], check.metric)
    return _said(statistics.sum_of(_means(samples)), samples)


def ratio(check: model.Ratio, cells: Cells) -> Measured:
    """Means over means."""
    samples = cells.samples([*check.of, *check.to], check.metric)
    over, under = _means(samples)[: len(check.of)], _means(samples)[len(check.of) :]
    estimate = statistics.ratio_of(over, under)
    if estimate is None:
        raise MissingError(f"{check.metric}: found a mean that is not above 0; a ratio needs means above 0")
    products = (" * ".join(shown(mean.mean or 0.0) for mean in means) for means in (over, under))
    return _said(estimate, samples, " against ".join(products))


def difference(check: model.Difference, cells: Cells) -> Measured:
    """Means less means."""
    samples = cells.samples([*check.of, *check.minus], check.metric)
    return _said(statistics.sum_of(_means(samples)[: len(check.of)], _means(samples)[len(check.of) :]), samples)


def spread(check: model.Spread, cells: Cells) -> Measured:
    """The coefficient of variation."""
    samples = cells.samples([check.of], check.metric)
    estimate = statistics.spread_of(samples[0].values)
    if estimate is None and len(samples[0].values) < 2:
        raise MissingError("found one repeat; a spread needs at least two")
    if estimate is None:
        raise MissingError(f"found a mean of 0 of {check.metric}; a spread is a share of the mean")
    return _said(estimate, samples)


def completion(check: model.Completion, cells: Cells) -> Measured:
    """The share of completed transfers in percent.

    It agrees if it is in the band, or if the test finds no difference from the paper's count. Of fewer cells than could
    differ from that count, however they end, nothing is said.
    """
    sample = cells.sample(check.of, None)
    if not sample.ended:
        raise MissingError(cells.absent(check.of))
    low, high = (PERCENT * end for end in statistics.clopper_pearson(sample.completed, sample.ended))
    text = f"{sample.completed} of {sample.ended} completed, {shown(low)} to {shown(high)} %"
    agrees: bool | None = False
    if check.paper_count:
        p = statistics.fisher_exact((sample.completed, sample.ended), check.paper_count)
        agrees = p >= SIGNIFICANT
        text += f"; compared with the paper's {check.paper_count[0]} of {check.paper_count[1]}: p = {p:.2g}"
        ends = ((completed, sample.ended) for completed in (0, sample.ended))
        if min(statistics.fisher_exact(end, check.paper_count) for end in ends) >= SIGNIFICANT:
            agrees = None
            text += f"; {sample.ended} cells are too few to differ from it, however they end"
    return Measured(text, statistics.Estimate(PERCENT * sample.completed / sample.ended, low, high), agrees)


def crossover(check: model.Crossover, cells: Cells) -> Measured:
    """The place where the ratio of two curves passes the threshold for good; the interval of the ratio gives the
    interval of that place.
    """
    points: list[tuple[float, statistics.Estimate]] = []
    samples: list[Measurements] = []
    for number, here in cells.along(check.of, check.along):
        pair = [here.sample(operand, check.metric) for operand in (check.of, check.to)]
        estimate = statistics.ratio_of(_means(pair[:1]), _means(pair[1:]))
        if number > 0 and estimate is not None:
            points.append((number, estimate))
            samples += pair
    if len(points) < 2:
        short = (operand for operand in (check.of, check.to) if len(cells.along(operand, check.along)) < 2)
        raise MissingError(f"{cells.absent(next(short, check.of))} at least at two values of {check.along}")
    crossing, first, last = (_place(points, name, check.ratio) for name in ENDS)
    estimate = statistics.Estimate(crossing or 0.0, first, last)
    if 0 < estimate.number < math.inf:
        return _said(estimate, samples)
    curve = ", ".join(f"{number:g}: {found.number:.3g}" for number, found in points)
    side = f"above {points[-1][0]:g}" if crossing else f"below {points[0][0]:g}"
    return Measured(f"if anywhere, {side}; the ratio by {check.along}: {curve}", estimate)


def arithmetic(check: model.Arithmetic, _cells: Cells) -> Measured:
    """A product over a product."""
    number = check.number
    above, below = (" * ".join(f"{item:g}" for item in items) for items in (check.multiply, check.divide))
    text = f"{above}{f' / ({below})' if below else ''} = {shown(number)}"
    return Measured(text, statistics.Estimate(number, number, number))


def order(check: model.Order, cells: Cells) -> Measured:
    """From each operand to the next."""
    samples = cells.samples(check.rising, check.metric)
    return _relation(samples, [_step(*pair) for pair in pairwise(samples)], " < ")


def trend(check: model.Trend, cells: Cells) -> Measured:
    """Along the axis; only the difference between the ends must be certain."""
    samples = [here.sample(check.of, check.metric) for _, here in cells.along(check.of, check.along)]
    samples = [sample for sample in samples if sample.values]
    if len(samples) < 2:
        raise MissingError(f"{cells.absent(check.of)} at least at two values of {check.along}")
    if check.direction == "falling":
        samples.reverse()
    steps = [_step(*pair, is_needed=False) for pair in pairwise(samples)]
    return _relation(samples, [*steps, _step(samples[0], samples[-1])], " to ")


MEASURES = (value, ratio, difference, spread, completion, crossover, arithmetic, order, trend)
KINDS: dict[str, Callable[[Any, Cells], Measured]] = {one.__name__: one for one in MEASURES}


def decide(measured: Sequence[Measured]) -> list[bool | None]:
    """For each relation, whether its means rise as stated: True, False, or None if the spread leaves it open.

    Holm's correction covers all of them.
    """
    corrected = iter(statistics.holm([1.0 if step.p is None else step.p for item in measured for step in item.steps]))
    decided: list[bool | None] = []
    for item in measured:
        certain = [(step, next(corrected) < SIGNIFICANT) for step in item.steps]
        if any(step.rise < 0 and is_certain for step, is_certain in certain):
            decided.append(False)
        else:
            needed = [step.rise > 0 and is_certain for step, is_certain in certain if step.is_needed]
            decided.append(True if needed and all(needed) else None)
    return decided


def shown(number: float) -> str:
    """Four significant digits, without an exponent where people do not expect one."""
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        text = f"{number:.4g}"
        return f"{number:.0f}" if "e" in text else text
    return f"{number:.3g}"


def _means(samples: Sequence[Measurements]) -> list[statistics.Mean]:
    return [statistics.mean_of(sample.values, is_exact=sample.is_exact) for sample in samples]


def _repeats(samples: Sequence[Measurements]) -> str:
    if all(sample.is_exact for sample in samples):
        return "n 1, nothing is drawn"
    counts = sorted({len(sample.values) for sample in samples})
    return f"n = {counts[0] if len(counts) == 1 else f'{counts[0]} to {counts[-1]}'}"


def _said(estimate: statistics.Estimate | None, samples: Sequence[Measurements], how: str = "") -> Measured:
    """The number in words: with its interval and the numbers of completed and incomplete transfers."""
    if estimate is None:
        raise MissingError("no values")
    has_interval = estimate.low is not None and estimate.high is not None
    interval = f" [{shown(estimate.low or 0.0)}, {shown(estimate.high or 0.0)}]" if has_interval else ""
    text = f"{shown(estimate.number)}{interval}, {_repeats(samples)}{f' ({how})' if how else ''}"
    return Measured(text + _incomplete(samples), estimate)


def _incomplete(samples: Sequence[Measurements]) -> str:
    number = sum(sample.incomplete for sample in samples)
    return f"; {number} did not complete" if number else ""


def _step(first: Measurements, second: Measurements, *, is_needed: bool = True) -> Step:
    """The rise from one sample's mean to another's."""
    before, after = _means([first, second])
    return Step((after.mean or 0.0) - (before.mean or 0.0), statistics.difference_p(before, after), is_needed)


def _relation(samples: Sequence[Measurements], steps: Sequence[Step], between: str) -> Measured:
    means = [mean.mean or 0.0 for mean in _means(samples)]
    known = [step.p for step in steps if step.is_needed and step.p is not None]
    worst = f"p = {max(known):.2g}" if known else "one repeat has no spread"
    worst = "exact" if all(sample.is_exact for sample in samples) else worst
    ends = statistics.Estimate(means[-1] / means[0], None, None) if means[0] else None
    text = f"{between.join(map(shown, means))}, {_repeats(samples)}, {worst}{_incomplete(samples)}"
    return Measured(text, ends, steps=tuple(steps))


def _place(points: Sequence[tuple[float, statistics.Estimate]], end: str, threshold: float) -> float | None:
    """The place where the curve, straight between points on logarithmic axes, rises above the threshold for good: 0 if
    it is nowhere below, infinite if it ends below; None if a point has no such end.
    """
    known = [(x, y) for x, found in points if (y := getattr(found, end)) is not None]
    if len(known) < len(points):
        return None
    if known[-1][1] < threshold:
        return math.inf
    for (x_before, before), (x_after, after) in reversed(list(pairwise(known))):
        if before < threshold:
            share = math.log(threshold / before) / math.log(after / before)
            return float(x_before * (x_after / x_before) ** share)
    return 0.0
