"""Checks that compare means with each other: order and trend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from scpslab.analysis.claims.evidence import Evidence, Sample
from scpslab.analysis.claims.model import ClaimsFile, Order, Trend
from scpslab.analysis.claims.numbers import SIGNIFICANT, At, Measured, absent, samples_of, shown
from scpslab.analysis.statistics import difference_p, holm, mean_of


@dataclass(frozen=True)
class Step:
    """From one mean to another.

    `p` is None if a mean has no spread; `is_needed`: the relation needs this step to be certain.
    """

    rise: float
    p: float | None
    is_needed: bool = True


@dataclass(frozen=True)
class Relation:
    """Means in the order in which a claim says they rise; `number` is the last divided by the first.

    `missing` names the cells that are missing.
    """

    text: str = ""
    number: float | None = None
    steps: tuple[Step, ...] = field(default=())
    missing: str = ""


def order(check: Order, file: ClaimsFile, evidence: Evidence, at: At) -> Relation:
    """From each operand to the next."""
    samples = samples_of(check.rising, check.metric, file, evidence, at)
    return (
        Relation(missing=samples.text)
        if isinstance(samples, Measured)
        else _relation(samples, [step(*pair) for pair in pairwise(samples)], " < ")
    )


def trend(check: Trend, file: ClaimsFile, evidence: Evidence, at: At) -> Relation:
    """Along the axis; only the difference between the ends must be certain."""
    series = file.series[check.of.series]
    points = evidence.axis(series, check.of, at, check.along)
    samples = [evidence.sample(series, check.of, {**at, check.along: (text,)}, check.metric) for _, text in points]
    samples = [sample for sample in samples if sample.values]
    if len(samples) < 2:
        return Relation(missing=f"{absent(check.of, file, at)} at least at two values of {check.along}")
    if check.direction == "falling":
        samples.reverse()
    steps = [step(*pair, is_needed=False) for pair in pairwise(samples)]
    return _relation(samples, [*steps, step(samples[0], samples[-1])], " to ")


RELATIONS: dict[str, Callable[[Any, ClaimsFile, Evidence, At], Relation]] = {"order": order, "trend": trend}


def step(first: Sample, second: Sample, *, is_needed: bool = True) -> Step:
    """The rise from one sample's mean to another's."""
    rise = (mean_of(second.values).mean or 0.0) - (mean_of(first.values).mean or 0.0)
    return Step(rise, difference_p(first.values, second.values), is_needed)


def decide(relations: Sequence[Relation]) -> list[bool | None]:
    """For each relation, whether its means rise as stated: True, False, or None if the spread leaves it open.

    Holm's correction covers all of them.
    """
    steps = [one for relation in relations for one in relation.steps]
    corrected = iter(holm([1.0 if one.p is None else one.p for one in steps]))
    decided: list[bool | None] = []
    for relation in relations:
        certain = [(one, next(corrected) < SIGNIFICANT) for one in relation.steps]
        if any(one.rise < 0 and is_certain for one, is_certain in certain):
            decided.append(False)
        else:
            decided.append(
                True
                if relation.steps and all(one.rise > 0 and is_certain for one, is_certain in certain if one.is_needed)
                else None
            )
    return decided


def _relation(samples: Sequence[Sample], steps: Sequence[Step], between: str) -> Relation:
    means = [mean_of(sample.values).mean or 0.0 for sample in samples]
    known = [one.p for one in steps if one.is_needed and one.p is not None]
    counts = sorted({len(sample.values) for sample in samples})
    text = f"{between.join(map(shown, means))}, n = {counts[0] if len(counts) == 1 else f'{counts[0]} to {counts[-1]}'}"
    worst = f", p = {max(known):.2g}" if known else ", one repeat has no spread"
    return Relation(text + worst, means[-1] / means[0] if means[0] else None, tuple(steps))
