"""Means with their uncertainty: Student-t intervals, Clopper-Pearson for completion rates, Welch's test, and grouping.

Sources: Student 1908; Clopper & Pearson 1934; Welch 1947. FY97 used the same intervals: 5 runs, t = 2.776 (M-09).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy import special

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Mean:
    """Mean of n values with the half width of its 95 % Student-t interval (n - 1 degrees of freedom).

    `sd` (sample standard deviation) and `ci95_half` are None for n = 1: one value says nothing about spread. All None for n = 0.
    """

    n: int
    mean: float | None
    sd: float | None
    ci95_half: float | None


@dataclass(frozen=True)
class Group:
    """The cells that share the values of some axes: how many ended how, and the means over the completed ones."""

    key: tuple[str, ...]
    completed: int
    incomplete: int
    failed: int
    means: dict[str, Mean]

    @property
    def completion(self) -> tuple[float, float]:
        """95 % Clopper-Pearson interval of the completion rate; failed cells say nothing about the protocol and do not count."""
        return clopper_pearson(self.completed, self.completed + self.incomplete)


@dataclass(frozen=True)
class Welch:
    """Welch's test of two means: statistic, degrees of freedom, two-sided p, and the 95 % interval of the difference first - second."""

    t: float
    degrees_of_freedom: float
    p: float
    difference: float
    ci95_half: float


def mean_of(values: Sequence[float]) -> Mean:
    """Mean, standard deviation and interval of independent values."""
    n = len(values)
    if n == 0:
        return Mean(0, None, None, None)
    if n == 1:
        return Mean(1, float(values[0]), None, None)
    if min(values) == max(values):
        # A deterministic cell repeated: the sum below would leave a rounding error that looks like spread.
        return Mean(n, float(values[0]), 0.0, 0.0)
    mean = math.fsum(values) / n
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    return Mean(n, mean, sd, t_quantile(n - 1) * sd / math.sqrt(n))


def t_quantile(degrees_of_freedom: float, confidence: float = CONFIDENCE) -> float:
    """Two-sided quantile of Student's t: 2.776 for 4 degrees of freedom and 95 %."""
    return float(special.stdtrit(degrees_of_freedom, 0.5 + confidence / 2))


def clopper_pearson(successes: int, trials: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Exact interval of a binomial proportion; (0, 1) without trials.

    Raises:
        ValueError: more successes than trials, or a negative number.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"found {successes} successes in {trials} trials; expected 0 <= successes <= trials")
    tail = (1 - confidence) / 2
    low = 0.0 if successes == 0 else float(special.betaincinv(successes, trials - successes + 1, tail))
    high = 1.0 if successes == trials else float(special.betaincinv(successes + 1, trials - successes, 1 - tail))
    return low, high


def welch(first: Sequence[float], second: Sequence[float]) -> Welch:
    """Welch's test for two means of unequal variances.

    Raises:
        ValueError: fewer than two values on a side, or no spread on both.
    """
    a, b = mean_of(first), mean_of(second)
    if a.sd is None or b.sd is None or a.mean is None or b.mean is None:
        raise ValueError(f"found {a.n} and {b.n} values; expected at least 2 on each side")
    share_a, share_b = a.sd**2 / a.n, b.sd**2 / b.n
    if share_a + share_b == 0:
        raise ValueError("found no spread on either side; expected values that differ")
    error = math.sqrt(share_a + share_b)
    degrees = (share_a + share_b) ** 2 / (share_a**2 / (a.n - 1) + share_b**2 / (b.n - 1))
    difference = a.mean - b.mean
    t = difference / error
    return Welch(t, degrees, 2 * float(special.stdtr(degrees, -abs(t))), difference, t_quantile(degrees) * error)


def group_rows(rows: Sequence[Mapping[str, str]], by: Sequence[str], metrics: Sequence[str]) -> list[Group]:
    """Rows of results.csv grouped by the values of the columns `by`, groups in the order of their first row.

    Only completed rows enter a mean, and of those only where the metric has a finite number.
    """
    members: dict[tuple[str, ...], list[Mapping[str, str]]] = {}
    for row in rows:
        members.setdefault(tuple(row.get(name, "") for name in by), []).append(row)
    groups = []
    for key, group in members.items():
        status = [row.get("status", "") for row in group]
        done = [row for row in group if row.get("status") == "completed"]
        means = {metric: mean_of([value for row in done if (value := number_in(row, metric)) is not None]) for metric in metrics}
        groups.append(Group(key, status.count("completed"), status.count("incomplete"), status.count("failed"), means))
    return groups


def number_in(row: Mapping[str, str], column: str) -> float | None:
    """The finite number in a column of a row, None for anything else."""
    try:
        value = float(row.get(column) or "nan")
    except ValueError:
        return None
    return value if math.isfinite(value) else None
