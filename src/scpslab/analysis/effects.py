"""How much two groups of values differ: difference, ratio and p, by means (Student, Welch) or by ranks (Wilcoxon), of
pairs or of independent groups.

Pairs are values at the same place of both groups. Two-sided throughout; intervals have 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from scpslab.analysis import ranks
from scpslab.analysis.statistics import (
    Estimate,
    difference_p,
    fisher_exact,
    mean_of,
    paired_p,
    ratio_of,
    ratio_of_pairs,
    sum_of,
)

# Relative to the values: differences that differ by less are equal but for the rounding of floats.
ROUNDING = 1e-12


class Method(StrEnum):
    """What p comes from, and whether effects are of means or of medians."""

    MEANS = "means"
    RANKS = "ranks"


@dataclass(frozen=True)
class Effect:
    """Second less first and second over first.

    `p` is None where too few values say nothing; `least_p` is the smallest p that so many values can give.
    """

    difference: Estimate | None
    ratio: Estimate | None
    p: float | None
    least_p: float | None


NO_EFFECT = Effect(None, None, None, None)


def effect(
    first: Sequence[float], second: Sequence[float], test: Method, *, paired: bool, is_certain: bool = False
) -> Effect:
    """The effect of two groups of values.

    `is_certain`: nothing was drawn, so that values without spread differ for a reason.
    """
    if not first or not second:
        return NO_EFFECT
    if test is Method.RANKS:
        return _by_ranks(first, second, paired=paired)
    return _means_of_pairs(first, second) if paired else _means_of_groups(first, second, is_certain=is_certain)


def completion_p(first: Sequence[bool], second: Sequence[bool], *, paired: bool) -> tuple[float | None, float | None]:
    """p, and the least p, that two groups complete equally often: McNemar's exact test of pairs, Fisher's of groups."""
    if not first or not second:
        return None, None
    if not paired:
        counts = (sum(first), len(first)), (sum(second), len(second))
        return fisher_exact(*counts), fisher_exact((0, len(first)), (len(second), len(second)))
    only_first = sum(a and not b for a, b in zip(first, second, strict=True))
    only_second = sum(b and not a for a, b in zip(first, second, strict=True))
    differ = only_first + only_second
    tail = sum(math.comb(differ, k) for k in range(min(only_first, only_second) + 1)) / 2.0**differ
    return min(1.0, 2 * tail), ranks.least_signed_rank_p(len(first))


def needed(least_p: Callable[[int], float | None], limit: float) -> int:
    """How many pairs, or values on each side, can give a p below a limit."""
    n = 2
    while (p := least_p(n)) is None or p >= limit:
        n += 1
    return n


def _by_ranks(first: Sequence[float], second: Sequence[float], *, paired: bool) -> Effect:
    are_positive = min(*first, *second) > 0
    logarithms = [[math.log(value) for value in part] for part in (first, second)] if are_positive else None
    if paired:
        differences = _differences(first, second)
        ratio = _exp(ranks.shift_of_pairs(_differences(*logarithms))) if logarithms else None
        return Effect(
            ranks.shift_of_pairs(differences),
            ratio,
            ranks.signed_rank_p(differences),
            ranks.least_signed_rank_p(len(differences)),
        )
    ratio = _exp(ranks.shift_of_groups(*logarithms)) if logarithms else None
    return Effect(
        ranks.shift_of_groups(first, second),
        ratio,
        ranks.rank_sum_p(first, second),
        ranks.least_rank_sum_p(len(first), len(second)),
    )


def _means_of_pairs(first: Sequence[float], second: Sequence[float]) -> Effect:
    differences = _differences(first, second)
    mean = mean_of(differences)
    p = paired_p(differences)
    least = None if p is None else 0.0
    if p == 0:
        # All pairs differ by the same: Student's t would be infinite. Of all signs that they could have had, two are as
        # far out.
        p = ranks.least_signed_rank_p(len(differences))
    return Effect(sum_of([mean]), ratio_of_pairs(first, second), p, least)


def _means_of_groups(first: Sequence[float], second: Sequence[float], *, is_certain: bool) -> Effect:
    a, b = mean_of(first), mean_of(second)
    p = difference_p(first, second)
    least = None if p is None else 0.0
    if p == 0 and a.sd == 0 == b.sd and not is_certain:
        # No spread on either side: Welch's t would be infinite. Of all divisions into two such groups, two are as far
        # apart.
        p = ranks.least_rank_sum_p(a.n, b.n)
    return Effect(sum_of([b], [a]), ratio_of([b], [a]), p, least)


def _differences(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Second less first, pair by pair; differences that are equal but for rounding are made equal, or their spread
    would be that of the rounding.
    """
    found = [b - a for a, b in zip(first, second, strict=True)]
    size = max(abs(value) for value in (*first, *second))
    if max(found) - min(found) <= ROUNDING * size:
        return [0.0 if abs(found[0]) <= ROUNDING * size else found[0]] * len(found)
    return found


def _exp(estimate: Estimate) -> Estimate:
    low, high = (None if end is None else math.exp(end) for end in (estimate.low, estimate.high))
    return Estimate(math.exp(estimate.number), low, high)
