"""Tests and estimates from ranks, which assume nothing of how values are distributed: Wilcoxon's signed ranks for
pairs, his rank sum for two groups.

p is exact, also with ties: the share of all signs (of all divisions into two groups) whose statistic is at least as far
out. Estimates are Hodges and Lehmann's, their intervals those of the same tests. Sources: Wilcoxon 1945; Mann & Whitney
1947; Hodges & Lehmann 1963. Larger samples than MOST_PAIRS or MOST_VALUES take the normal approximation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from scpslab.analysis.statistics import CONFIDENCE, Estimate

Weights = npt.NDArray[np.float64]
MOST_PAIRS = 200
MOST_VALUES = 100
# Two-sided, of the normal distribution: the 97.5 % quantile.
NORMAL_QUANTILE = 1.959963984540054


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
        return _normal_p(
            total - len(second) * mean, len(first) * len(second) * spread / (len(ranks) * (len(ranks) - 1))
        )
    return _two_sided(_sums_of_groups(tuple(sorted(ranks)), len(second)), total)


def shift_of_pairs(differences: Sequence[float]) -> Estimate:
    """The median of all means of two differences (each also with itself); no ends with fewer than 6 pairs, whose least
    p is above 5 %.
    """
    n = len(differences)
    means = sorted((differences[i] + differences[j]) / 2 for i in range(n) for j in range(i, n))
    if n > MOST_PAIRS:
        return _estimate(means, _normal_rank(n * (n + 1) / 4, n * (n + 1) * (2 * n + 1) / 24))
    return _estimate(means, _last_in_tail(_sums_of_signs(tuple(range(2, 2 * n + 1, 2)))))


def shift_of_groups(first: Sequence[float], second: Sequence[float]) -> Estimate:
    """The median of all differences of a value of `second` and one of `first`; no ends where the least p is above 5
    %.
    """
    differences = sorted(b - a for a in first for b in second)
    n, others = len(second), len(first)
    if n + others > MOST_VALUES:
        return _estimate(differences, _normal_rank(n * others / 2, n * others * (n + others + 1) / 12))
    sums = _sums_of_groups(tuple(range(2, 2 * (n + others) + 1, 2)), n)
    return _estimate(differences, _last_in_tail(sums[n * (n + 1) :]))


def least_signed_rank_p(pairs: int) -> float | None:
    """The smallest p that so many pairs can give: all differences of one sign."""
    return min(1.0, 2.0 ** (1 - pairs)) if pairs else None


def least_rank_sum_p(first: int, second: int) -> float | None:
    """The smallest p that two groups of these sizes can give: all values of one above all of the other."""
    return min(1.0, 2 / math.comb(first + second, second)) if first and second else None


def doubled_ranks(values: Sequence[float]) -> list[int]:
    """Twice the rank of each value among all: whole numbers, though equal values share their mean rank."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    ranks = [0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for index in order[start:end]:
            ranks[index] = start + 1 + end
        start = end
    return ranks


@cache
def _sums_of_signs(ranks: tuple[int, ...]) -> Weights:
    """The probability of every sum of the ranks whose sign is positive."""
    found = np.zeros(sum(ranks) + 1)
    found[0] = 1.0
    for rank in ranks:
        found[rank:] += found[:-rank].copy()
        found /= 2
    return found


@cache
def _sums_of_groups(ranks: tuple[int, ...], size: int) -> Weights:
    """The probability of every sum of `size` of the ranks."""
    # Row k: the share of all choices of k ranks so far, weighted so that the last row sums up to 1.
    found = np.zeros((size + 1, sum(ranks) + 1))
    found[0, 0] = 1.0
    for rank in ranks:
        found[1:, rank:] += found[:-1, :-rank].copy()
    found[size] /= math.comb(len(ranks), size)
    last: Weights = found[size]
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
        if share > (1 - CONFIDENCE) / 2:
            break
        last = rank
    return last


def _normal_rank(mean: float, variance: float) -> int:
    return math.floor(mean - NORMAL_QUANTILE * math.sqrt(variance))


def _normal_p(distance: float, variance: float) -> float:
    return math.erfc(abs(distance) / math.sqrt(2 * variance)) if variance else 1.0


def _estimate(ordered: Sequence[float], last: int) -> Estimate:
    middle = len(ordered) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return Estimate(median, None, None) if last < 0 else Estimate(median, ordered[last], ordered[-1 - last])
