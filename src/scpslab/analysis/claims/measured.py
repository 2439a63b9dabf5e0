"""What the checks of claims measure: one function for each kind of check, one line each in KINDS.

All kinds but two give one number with its interval. `order` and `trend` compare means with each other, in steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from scpslab.analysis import statistics
from scpslab.analysis.claims import model
from scpslab.analysis.claims.evidence import Evidence, EvidenceRow
from scpslab.analysis.figures.source import axis_number
from scpslab.documents.quantities import AxisValue

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

    `agrees`: a test with the paper's counts finds no difference. `steps`: from each mean to the next, in the order in
    which a claim says they rise; the number is then the last divided by the first, None where that is 0.
    """

    text: str
    estimate: statistics.Estimate | None = None
    agrees: bool = False
    steps: tuple[Step, ...] = ()
    is_missing: bool = False


@dataclass(frozen=True)
class Measurements:
    """The cells of an operand: values of the metric over the completed ones, and how many ended how."""

    values: tuple[float, ...]
    completed: int
    incomplete: int

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
        values = tuple(row.values.numbers[name] for row in done if name in row.values.numbers)
        return Measurements(values, len(done), len(rows) - len(done))

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

    It agrees if it is in the band, or if the test finds no difference from the paper's count.
    """
    sample = cells.sample(check.of, None)
    if not sample.ended:
        raise MissingError(cells.absent(check.of))
    low, high = (PERCENT * end for end in statistics.clopper_pearson(sample.completed, sample.ended))
    text = f"{sample.completed} of {sample.ended} completed, {shown(low)} to {shown(high)} %"
    agrees = False
    if check.paper_count:
        p = statistics.fisher_exact((sample.completed, sample.ended), check.paper_count)
        agrees = p >= SIGNIFICANT
        text += f"; compared with the paper's {check.paper_count[0]} of {check.paper_count[1]}: p = {p:.2g}"
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


KINDS: dict[str, Callable[[Any, Cells], Measured]] = {
    "value": value,
    "ratio": ratio,
    "difference": difference,
    "spread": spread,
    "completion": completion,
    "crossover": crossover,
    "arithmetic": arithmetic,
    "order": order,
    "trend": trend,
}


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
    return [statistics.mean_of(sample.values) for sample in samples]


def _repeats(samples: Sequence[Measurements]) -> str:
    counts = sorted({len(sample.values) for sample in samples})
    return f"n = {counts[0] if len(counts) == 1 else f'{counts[0]} to {counts[-1]}'}"


def _said(estimate: statistics.Estimate | None, samples: Sequence[Measurements], how: str = "") -> Measured:
    """The number in words: with its interval and the numbers of completed and incomplete transfers."""
    if estimate is None:
        raise MissingError("no values")
    has_interval = estimate.low is not None and estimate.high is not None
    interval = f" [{shown(estimate.low or 0.0)}, {shown(estimate.high or 0.0)}]" if has_interval else ""
    text = f"{shown(estimate.number)}{interval}, {_repeats(samples)}{f' ({how})' if how else ''}"
    incomplete = sum(sample.incomplete for sample in samples)
    return Measured(text + (f"; {incomplete} did not complete" if incomplete else ""), estimate)


def _step(first: Measurements, second: Measurements, *, is_needed: bool = True) -> Step:
    """The rise from one sample's mean to another's."""
    before, after = _means([first, second])
    return Step(
        (after.mean or 0.0) - (before.mean or 0.0), statistics.difference_p(first.values, second.values), is_needed
    )


def _relation(samples: Sequence[Measurements], steps: Sequence[Step], between: str) -> Measured:
    means = [mean.mean or 0.0 for mean in _means(samples)]
    known = [step.p for step in steps if step.is_needed and step.p is not None]
    worst = f"p = {max(known):.2g}" if known else "one repeat has no spread"
    ends = statistics.Estimate(means[-1] / means[0], None, None) if means[0] else None
    return Measured(f"{between.join(map(shown, means))}, {_repeats(samples)}, {worst}", ends, steps=tuple(steps))


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
