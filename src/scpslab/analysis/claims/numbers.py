"""Checks that give one number with an interval: one function per kind, one line each in NUMBERS."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from scpslab.analysis.claims.evidence import Evidence, Sample
from scpslab.analysis.claims.model import (
    Arithmetic,
    ClaimsFile,
    Completion,
    Crossover,
    Difference,
    Operand,
    Ratio,
    Spread,
    Value,
)
from scpslab.analysis.statistics import Estimate, clopper_pearson, fisher_exact, mean_of, ratio_of, spread_of, sum_of
from scpslab.documents.quantities import AxisValue

At = Mapping[str, tuple[AxisValue, ...]]
SIGNIFICANT = 0.05
PERCENT = 100
# Along the axis, the upper end of a ratio's interval crosses the threshold first, and the lower end last.
ENDS = ("number", "high", "low")


@dataclass(frozen=True)
class Measured:
    """The number that a check gives; without an estimate the text says what is missing.

    `agrees`: a test with the paper's counts finds no difference.
    """

    estimate: Estimate | None
    text: str
    agrees: bool = False


def value(check: Value, file: ClaimsFile, evidence: Evidence, at: At) -> Measured:
    """The mean of a metric."""
    samples = samples_of([check.of], check.metric, file, evidence, at)
    return samples if isinstance(samples, Measured) else _said(sum_of([mean_of(samples[0].values)]), samples)


def ratio(check: Ratio, file: ClaimsFile, evidence: Evidence, at: At) -> Measured:
    """Means over means."""
    samples = samples_of([*check.of, *check.to], check.metric, file, evidence, at)
    if isinstance(samples, Measured):
        return samples
    means = [mean_of(sample.values) for sample in samples]
    found = ratio_of(means[: len(check.of)], means[len(check.of) :])
    if found is None:
        return Measured(None, f"{check.metric}: found a mean that is not above 0; a ratio needs means above 0")
    return _said(
        found, samples, " against ".join(_product(part) for part in (means[: len(check.of)], means[len(check.of) :]))
    )


def difference(check: Difference, file: ClaimsFile, evidence: Evidence, at: At) -> Measured:
    """Means less means."""
    samples = samples_of([*check.of, *check.minus], check.metric, file, evidence, at)
    if isinstance(samples, Measured):
        return samples
    means = [mean_of(sample.values) for sample in samples]
    return _said(sum_of(means[: len(check.of)], means[len(check.of) :]), samples)


def spread(check: Spread, file: ClaimsFile, evidence: Evidence, at: At) -> Measured:
    """The coefficient of variation."""
    samples = samples_of([check.of], check.metric, file, evidence, at)
    if isinstance(samples, Measured):
        return samples
    found = spread_of(samples[0].values)
    lacks = (
        "one repeat; a spread needs at least two"
        if len(samples[0].values) < 2
        else f"a mean of 0 of {check.metric}; a spread is a share of the mean"
    )
    return _said(found, samples) if found else Measured(None, f"found {lacks}")


def completion(check: Completion, file: ClaimsFile, evidence: Evidence, at: At) -> Measured:
    """The share of completed transfers in percent.

    It agrees if it is in the band, or if the test finds no difference from the paper's count.
    """
    sample = evidence.sample(file.series[check.of.series], check.of, at, None)
    if not sample.ended:
        return Measured(None, absent(check.of, file, at))
    low, high = clopper_pearson(sample.completed, sample.ended)
    text = f"{sample.completed} of {sample.ended} completed, {shown(PERCENT * low)} to {shown(PERCENT * high)} %"
    agrees = False
    if check.paper_count:
        p = fisher_exact((sample.completed, sample.ended), check.paper_count)
        agrees = p >= SIGNIFICANT
        text += f"; compared with the paper's {check.paper_count[0]} of {check.paper_count[1]}: p = {p:.2g}"
    return Measured(Estimate(PERCENT * sample.completed / sample.ended, PERCENT * low, PERCENT * high), text, agrees)


def crossover(check: Crossover, file: ClaimsFile, evidence: Evidence, at: At) -> Measured:
    """The place where the ratio of two curves passes the threshold for good; the interval of the ratio gives the
    interval of that place.
    """
    points: list[tuple[float, Estimate]] = []
    samples: list[Sample] = []
    for number, text in evidence.axis(file.series[check.of.series], check.of, at, check.along):
        here = {**at, check.along: (text,)}
        pair = [evidence.sample(file.series[item.series], item, here, check.metric) for item in (check.of, check.to)]
        found = ratio_of([mean_of(pair[0].values)], [mean_of(pair[1].values)])
        if number > 0 and found is not None:
            points.append((number, found))
            samples += pair
    if len(points) < 2:
        lacking = next(
            (
                item
                for item in (check.of, check.to)
                if len(evidence.axis(file.series[item.series], item, at, check.along)) < 2
            ),
            check.of,
        )
        return Measured(None, f"{absent(lacking, file, at)} at least at two values of {check.along}")
    crossing, first, last = (
        _crossing([(number, end) for number, found in points if (end := getattr(found, name)) is not None], check.ratio)
        for name in ENDS
    )
    if crossing is not None:
        return _said(Estimate(crossing, first, last), samples)
    curve = ", ".join(f"{number:g}: {found.number:.3g}" for number, found in points)
    if points[-1][1].number >= check.ratio:
        return Measured(
            Estimate(0.0, 0.0, last or 0.0), f"if anywhere, below {points[0][0]:g}; the ratio by {check.along}: {curve}"
        )
    return Measured(
        Estimate(math.inf, first or math.inf, math.inf),
        f"if anywhere, above {points[-1][0]:g}; the ratio by {check.along}: {curve}",
    )


def arithmetic(check: Arithmetic, file: ClaimsFile, evidence: Evidence, at: At) -> Measured:
    """A product over a product."""
    number = check.number
    below = f" / ({' * '.join(f'{item:g}' for item in check.divide)})" if check.divide else ""
    return Measured(
        Estimate(number, number, number),
        f"{' * '.join(f'{item:g}' for item in check.multiply)}{below} = {shown(number)}",
    )


NUMBERS: dict[str, Callable[[Any, ClaimsFile, Evidence, At], Measured]] = {
    "value": value,
    "ratio": ratio,
    "difference": difference,
    "spread": spread,
    "completion": completion,
    "crossover": crossover,
    "arithmetic": arithmetic,
}


def samples_of(
    operands: Sequence[Operand], metric: str, file: ClaimsFile, evidence: Evidence, at: At
) -> list[Sample] | Measured:
    """The samples of all operands, or a text that names the operand without values."""
    samples = [evidence.sample(file.series[operand.series], operand, at, metric) for operand in operands]
    for operand, sample in zip(operands, samples, strict=True):
        if not sample.values:
            lacks = f"; {sample.ended} cells ended, without {operand.metric or metric}" if sample.ended else ""
            return Measured(None, absent(operand, file, at) + lacks)
    return samples


def absent(operand: Operand, file: ClaimsFile, at: At) -> str:
    """The cells that a check lacks, in words."""
    series = file.series[operand.series]
    wanted = {**series.where, **operand.at, **at}
    return " ".join(
        [
            "no cells of",
            ", ".join(series.scenarios),
            *(f"{name}={'|'.join(str(value).lower() for value in values)}" for name, values in wanted.items()),
        ]
    )


def _said(estimate: Estimate | None, samples: Sequence[Sample], how: str = "") -> Measured:
    """The number in words: with its interval and the numbers of completed and incomplete transfers."""
    if estimate is None:
        return Measured(None, "no values")
    interval = (
        "" if estimate.low is None or estimate.high is None else f" [{shown(estimate.low)}, {shown(estimate.high)}]"
    )
    counts = sorted({len(sample.values) for sample in samples})
    text = (
        f"{shown(estimate.number)}{interval}, n = {counts[0] if len(counts) == 1 else f'{counts[0]} to {counts[-1]}'}"
    )
    incomplete = sum(sample.incomplete for sample in samples)
    return Measured(
        estimate, text + (f" ({how})" if how else "") + (f"; {incomplete} did not complete" if incomplete else "")
    )


def _product(means: Sequence[Any]) -> str:
    return " * ".join(shown(mean.mean) for mean in means)


def shown(number: float) -> str:
    """Four significant digits, without an exponent where people do not expect one."""
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        text = f"{number:.4g}"
        return f"{number:.0f}" if "e" in text else text
    return f"{number:.3g}"


def _crossing(points: Sequence[tuple[float, float]], threshold: float) -> float | None:
    """The place where the curve, straight between points on logarithmic axes, rises above the threshold for good; None
    if it does not.
    """
    for (x_before, before), (x_after, after) in reversed(list(pairwise(points))):
        if after < threshold:
            return None
        if before < threshold:
            share = math.log(threshold / before) / math.log(after / before)
            return float(x_before * (x_after / x_before) ** share)
    return None
