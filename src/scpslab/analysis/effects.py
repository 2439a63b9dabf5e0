"""How much two groups of values differ: difference, ratio and p, by means (Student, Welch) or by ranks (Wilcoxon), of
pairs or of independent groups.

Pairs are values at the same place of both groups. Two-sided throughout; intervals have 95 %.

Ranks assume nothing of how values are distributed: Wilcoxon's signed ranks for pairs, his rank sum for two groups. p is
exact, also with ties: the share of all signs (of all divisions into two groups) whose statistic is at least as far out.
Estimates are Hodges and Lehmann's, their intervals those of the same tests. Sources: Wilcoxon 1945; Mann & Whitney
1947; Hodges & Lehmann 1963. Larger samples than MOST_PAIRS or MOST_VALUES take the normal approximation.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from statistics import median

import numpy as np
import numpy.typing as npt

from scpslab.analysis import statistics

# Relative to the values: differences that differ by less are equal but for the rounding of floats.
ROUNDING = 1e-12
Weights = npt.NDArray[np.float64]
MOST_PAIRS = 200
MOST_VALUES = 100
# Two-sided, of the normal distribution: the 97.5 % quantile.
NORMAL_QUANTILE = 1.959963984540054


class Method(StrEnum):
    """What p comes from, and whether effects are of means or of medians."""

    MEANS = "means"
    RANKS = "ranks"


@dataclass(frozen=True)
class Effect:
    """Second less first and second over first.

    `p` is None where too few values say nothing; `least_p` is the smallest p that so many values can give.
    """

    difference: statistics.Estimate | None
    ratio: statistics.Estimate | None
    p: float | None
    least_p: float | None


NO_EFFECT = Effect(None, None, None, None)


def effect(first: Sequence[float], second: Sequence[float], test: Method, *, paired: bool) -> Effect:
    """The effect of two groups of values."""
    if not first or not second:
        return NO_EFFECT
    if test is Method.RANKS:
        return _by_ranks(first, second, paired=paired)
    return _means_of_pairs(first, second) if paired else _means_of_groups(first, second)


def completion_p(first: Sequence[bool], second: Sequence[bool], *, paired: bool) -> tuple[float | None, float | None]:
    """p, and the least p, that two groups complete equally often: McNemar's exact test of pairs, Fisher's of groups."""
    if not first or not second:
        return None, None
    if not paired:
        counts = (sum(first), len(first)), (sum(second), len(second))
        return statistics.fisher_exact(*counts), statistics.fisher_exact((0, len(first)), (len(second), len(second)))
    only_first = sum(a and not b for a, b in zip(first, second, strict=True))
    only_second = sum(b and not a for a, b in zip(first, second, strict=True))
    differ = only_first + only_second
    tail = sum(math.comb(differ, k) for k in range(min(only_first, only_second) + 1)) / 2.0**differ
    return min(1.0, 2 * tail), least_signed_rank_p(len(first))


def needed(least_p: Callable[[int], float | None], limit: float) -> int:
    """How many pairs, or values on each side, can give a p below a limit."""
    n = 2
    while (p := least_p(n)) is None or p >= limit:
        n += 1
    return n


def _by_ranks(first: Sequence[float], second: Sequence[float], *, paired: bool) -> Effect:
    """An infinite value is beyond all others, nobody knows by how much: there is a p, and no estimate."""
    if not all(map(math.isfinite, (*first, *second))):
        if not paired:
            return Effect(None, None, rank_sum_p(first, second), least_rank_sum_p(len(first), len(second)))
        apart = [0.0 if a == b else b - a for a, b in zip(first, second, strict=True)]
        return Effect(None, None, signed_rank_p(apart), least_signed_rank_p(len(apart)))
    are_positive = min(*first, *second) > 0
    logarithms = [[math.log(value) for value in part] for part in (first, second)] if are_positive else None
    if paired:
        differences = _differences(first, second)
        ratio = _exp(shift_of_pairs(_differences(*logarithms))) if logarithms else None
        least_p = least_signed_rank_p(len(differences))
        return Effect(shift_of_pairs(differences), ratio, signed_rank_p(differences), least_p)
    ratio = _exp(shift_of_groups(*logarithms)) if logarithms else None
    least_p = least_rank_sum_p(len(first), len(second))
    return Effect(shift_of_groups(first, second), ratio, rank_sum_p(first, second), least_p)


def _means_of_pairs(first: Sequence[float], second: Sequence[float]) -> Effect:
    differences = _differences(first, second)
    mean = statistics.mean_of(differences)
    p = statistics.paired_p(differences)
    least = None if p is None else 0.0
    if p == 0:
        # All pairs differ by the same: Student's t would be infinite. Of all signs that they could have had, two are as
        # far out.
        p = least_signed_rank_p(len(differences))
    return Effect(statistics.sum_of([mean]), statistics.ratio_of_pairs(first, second), p, least)


def _means_of_groups(first: Sequence[float], second: Sequence[float]) -> Effect:
    a, b = statistics.mean_of(first), statistics.mean_of(second)
    p = statistics.difference_p(a, b)
    least = None if p is None else 0.0
    if p == 0 and a.sd == 0 == b.sd:
        # No spread on either side: Welch's t would be infinite. Of all divisions into two such groups, two are as far
        # apart.
        p = least_rank_sum_p(a.n, b.n)
    return Effect(statistics.sum_of([b], [a]), statistics.ratio_of([b], [a]), p, least)


def _differences(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Second less first, pair by pair; differences that are equal but for rounding are made equal, or their spread
    would be that of the rounding.
    """
    differences = [b - a for a, b in zip(first, second, strict=True)]
    size = max(abs(value) for value in (*first, *second))
    if max(differences) - min(differences) <= ROUNDING * size:
        return [0.0 if abs(differences[0]) <= ROUNDING * size else differences[0]] * len(differences)
    return differences


def _exp(estimate: statistics.Estimate) -> statistics.Estimate:
    low, high = (None if end is None else math.exp(end) for end in (estimate.low, estimate.high))
    return statistics.Estimate(math.exp(estimate.number), low, high)


def signed_rank_p(differences: Sequence[float]) -> float:
    """Two-sided p that differences of pairs lie symmetrically about 0.

    Differences of 0 are left out, as Wilcoxon does; 1 if nothing remains.
    """
    others = [value for value in differences if value != 0]
    ranks = doubled_ranks([abs(value) for value in others])
    positive = sum(rank for rank, value in zip(ranks, others, strict=True) if value > 0)
    if len(others) > MOST_PAIRS:
        return _normal_p(positive - sum(ranks) / 2, sum(rank**2 for rank in ranks) / 4)
    return _two_sided(_sums_of_signs(tuple(sorted(ranks))), positive) if others else 1.0


def rank_sum_p(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided p that two groups of independent values have one distribution."""
    ranks = doubled_ranks([*first, *second])
    total, mean = sum(ranks[len(first) :]), sum(ranks) / len(ranks)
    if len(ranks) > MOST_VALUES:
        spread = sum((rank - mean) ** 2 for rank in ranks)
        variance = len(first) * len(second) * spread / (len(ranks) * (len(ranks) - 1))
        return _normal_p(total - len(second) * mean, variance)
    return _two_sided(_sums_of_groups(tuple(sorted(ranks)), len(second)), total)


def shift_of_pairs(differences: Sequence[float]) -> statistics.Estimate:
    """The median of all means of two differences (each also with itself); no ends with fewer than 6 pairs, whose least
    p is above 5 %.
    """
    n = len(differences)
    means = sorted((differences[i] + differences[j]) / 2 for i in range(n) for j in range(i, n))
    if n > MOST_PAIRS:
        return _median_of(means, _normal_rank(n * (n + 1) / 4, n * (n + 1) * (2 * n + 1) / 24))
    return _median_of(means, _last_in_tail(_sums_of_signs(tuple(range(2, 2 * n + 1, 2)))))


def shift_of_groups(first: Sequence[float], second: Sequence[float]) -> statistics.Estimate:
    """The median of all differences of a value of `second` and one of `first`; no ends where the least p is above 5
    %.
    """
    differences = sorted(b - a for a in first for b in second)
    n, others = len(second), len(first)
    if n + others > MOST_VALUES:
        return _median_of(differences, _normal_rank(n * others / 2, n * others * (n + others + 1) / 12))
    sums = _sums_of_groups(tuple(range(2, 2 * (n + others) + 1, 2)), n)
    return _median_of(differences, _last_in_tail(sums[n * (n + 1) :]))


def least_signed_rank_p(pairs: int) -> float | None:
    """The smallest p that so many pairs can give: all differences of one sign."""
    return min(1.0, 2.0 ** (1 - pairs)) if pairs else None


def least_rank_sum_p(first: int, second: int) -> float | None:
    """The smallest p that two groups of these sizes can give: all values of one above all of the other."""
    return min(1.0, 2 / math.comb(first + second, second)) if first and second else None


def doubled_ranks(values: Sequence[float]) -> list[int]:
    """Twice the rank of each value among all: whole numbers, though equal values share their mean rank."""
    _, place, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    ranks: list[int] = (2 * np.cumsum(counts) - counts + 1)[place].tolist()
    return ranks


@cache
def _sums_of_signs(ranks: tuple[int, ...]) -> Weights:
    """The probability of every sum of the ranks whose sign is positive."""
    ways = np.zeros(sum(ranks) + 1)
    ways[0] = 1.0
    for rank in ranks:
        ways[rank:] += ways[:-rank].copy()
        ways /= 2
    return ways


@cache
def _sums_of_groups(ranks: tuple[int, ...], size: int) -> Weights:
    """The probability of every sum of `size` of the ranks."""
    # Row k: the share of all choices of k ranks so far, weighted so that the last row sums up to 1.
    ways = np.zeros((size + 1, sum(ranks) + 1))
    ways[0, 0] = 1.0
    for rank in ranks:
        ways[1:, rank:] += ways[:-1, :-rank].copy()
    ways[size] /= math.comb(len(ranks), size)
    last: Weights = ways[size]
    return last


def _two_sided(probabilities: Weights, value: int) -> float:
    """Twice the smaller tail that begins at a value."""
    below, above = float(probabilities[: value + 1].sum()), float(probabilities[value:].sum())
    return min(1.0, 2 * min(below, above))


def _last_in_tail(probabilities: Weights) -> int:
    """The last rank (not doubled, from 0) up to which the sums are no likelier than half of what the confidence leaves;
    -1: not even the first.
    """
    share, last = 0.0, -1
    for rank, probability in enumerate(probabilities[::2]):
        share += float(probability)
        if share > (1 - statistics.CONFIDENCE) / 2:
            break
        last = rank
    return last


def _normal_rank(mean: float, variance: float) -> int:
    return math.floor(mean - NORMAL_QUANTILE * math.sqrt(variance))


def _normal_p(distance: float, variance: float) -> float:
    return math.erfc(abs(distance) / math.sqrt(2 * variance)) if variance else 1.0


def _median_of(ordered: Sequence[float], last: int) -> statistics.Estimate:
    """The median, with the interval that leaves out the values up to `last` at each end."""
    ends = (None, None) if last < 0 else (ordered[last], ordered[-1 - last])
    return statistics.Estimate(median(ordered), *ends)
