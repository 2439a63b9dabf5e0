"""Means with their uncertainty: Student-t intervals, Clopper-Pearson for completion rates, Welch's test, and grouping.

Combinations of means (sums, ratios) have intervals with Welch's and Satterthwaite's degrees of freedom; several tests
at once are corrected by Holm's method. Sources: Student 1908; Clopper & Pearson 1934; Fisher 1935; Satterthwaite 1946;
Welch 1947; Holm 1979. FY97 used the same intervals of means: 5 runs, t = 2.776 (apparatus M-09).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import median
from typing import Any

CONFIDENCE = 0.95
# From so many values on a mean is shown with its interval: Student's t is 12.7 for two values and 4.3 for three.
ENOUGH = 4
# Up to so many trials a share is exact to the last digit.
FEW = 200
# Shares of the link's rate, and all of it (the report's unit has 1024 for 1000).
CEILINGS = {"utilization": 1.0, "throughput_report_pct": 100_000 / 1024}
# How a cell ends that does not complete.
OTHER_ENDS = ("incomplete", "unsupported", "failed")


class ResultRow(dict[str, str]):
    """A cell's line of results.csv: the text of each column, "" where the cell has none, and the finite `numbers` among
    them.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        super().__init__(texts)
        self.numbers = {column: number for column, text in texts.items() if (number := finite(text)) is not None}

    @property
    def has_completed(self) -> bool:
        """Whether the cell completed: only then its numbers enter a mean."""
        return self.get("status") == "completed"


@dataclass(frozen=True)
class Mean:
    """Mean of n values with the half width of its 95 % Student-t interval (n - 1 degrees of freedom).

    `sd` (sample standard deviation) and `ci95_half` are None for n = 1: one value says nothing about spread, unless no
    chance is in it. All None for n = 0. `least`, `most` and `median` are those of the values, None where these are not
    known; `ceiling` is what no value can be above. `is_partial`: other cells ended without a value.
    """

    n: int
    mean: float | None
    sd: float | None
    ci95_half: float | None
    least: float | None = None
    most: float | None = None
    median: float | None = None
    ceiling: float = math.inf
    is_partial: bool = False

    @property
    def shown(self) -> tuple[float, float] | None:
        """The ends that a reader is shown: the interval's; those of the values where `has_range`; None without spread
        or with one value.
        """
        if self.mean is None or not self.ci95_half:
            return None
        if self.has_range and self.least is not None and self.most is not None:
            return self.least, self.most
        return self.mean - self.ci95_half, self.mean + self.ci95_half

    @property
    def has_range(self) -> bool:
        """Whether the values' own range is shown: there are few, or the interval has numbers that cannot be, below 0 or
        above the ceiling.
        """
        if self.mean is None or not self.ci95_half or self.least is None or self.most is None:
            return False
        low, high = self.mean - self.ci95_half, self.mean + self.ci95_half
        return self.n < ENOUGH or self.least >= 0 > low or self.most <= self.ceiling < high


@dataclass(frozen=True)
class Group:
    """The cells that share the values of some axes: how many ended how, and the means over the completed ones."""

    key: tuple[str, ...]
    completed: int
    incomplete: int
    failed: int
    means: dict[str, Mean]
    unsupported: int = 0

    @property
    def completion(self) -> tuple[float, float]:
        """95 % Clopper-Pearson interval of the completion rate; failed and unsupported cells say nothing about the
        protocol and do not count.
        """
        return clopper_pearson(self.completed, self.completed + self.incomplete)


@dataclass(frozen=True)
class Estimate:
    """A number made of means, with its 95 % interval; `low` and `high` are None where a mean of one value leaves no
    interval.
    """

    number: float
    low: float | None
    high: float | None


def mean_of(values: Sequence[float], ceiling: float = math.inf, *, is_exact: bool = False) -> Mean:
    """Mean, standard deviation and interval of independent values, none of which can be above `ceiling`. `is_exact`: no
    chance is in them, so that one value says all.
    """
    n = len(values)
    if n == 0:
        return Mean(0, None, None, None)
    if n == 1 and not is_exact:
        return Mean(1, float(values[0]), None, None, values[0], values[0], values[0])
    if min(values) == max(values):
        # A deterministic cell repeated: the sum below would leave a rounding error that looks like spread.
        return Mean(n, float(values[0]), 0.0, 0.0, values[0], values[0], values[0])
    mean = math.fsum(values) / n
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    half = t_quantile(n - 1) * sd / math.sqrt(n)
    return Mean(n, mean, sd, half, min(values), max(values), median(values), ceiling)


@cache
def t_quantile(degrees_of_freedom: float) -> float:
    """Two-sided quantile of Student's t: 2.776 for 4 degrees of freedom and 95 %."""
    return _where(lambda t: 2 * _t_tail(degrees_of_freedom, t) - (1 - CONFIDENCE), 0.0, 16.0)


@cache
def clopper_pearson(successes: int, trials: int) -> tuple[float, float]:
    """Exact 95 % interval of a binomial proportion; (0, 1) without trials.

    Raises:
        ValueError: more successes than trials, or a negative number.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"found {successes} successes in {trials} trials; expected 0 <= successes <= trials")
    tail = (1 - CONFIDENCE) / 2
    low = 0.0 if successes == 0 else _beta_quantile(successes, trials - successes + 1, tail)
    high = 1.0 if successes == trials else _beta_quantile(successes + 1, trials - successes, 1 - tail)
    return low, high


def sum_of(plus: Sequence[Mean], minus: Sequence[Mean] = ()) -> Estimate | None:
    """The sum of the means of `plus` less those of `minus`; None when one of them has no values."""
    means = [*plus, *minus]
    if any(mean.mean is None for mean in means):
        return None
    number = math.fsum(_center(mean) for mean in plus) - math.fsum(_center(mean) for mean in minus)
    half = _half([_share(mean) for mean in means])
    return Estimate(number, None, None) if half is None else Estimate(number, number - half, number + half)


def ratio_of(over: Sequence[Mean], under: Sequence[Mean]) -> Estimate | None:
    """The product of the means of `over`, divided by that of `under`; None when one of them has no values or is not
    above 0.

    The interval is that of the logarithm (delta method), so it is not symmetric and stays above 0.
    """
    means = [*over, *under]
    if any(mean.mean is None or mean.mean <= 0 for mean in means):
        return None
    logarithms = [math.fsum(math.log(_center(mean)) for mean in side) for side in (over, under)]
    half = _half([_share(mean, _center(mean)) for mean in means])
    return _factor(math.exp(logarithms[0] - logarithms[1]), half)


def ratio_of_pairs(first: Sequence[float], second: Sequence[float]) -> Estimate | None:
    """The mean of `second` over that of `first`, values at the same place being pairs; None when a mean is not above 0.

    The interval is that of the logarithm (delta method), from the differences of the pairs' shares in their means.
    """
    over, under = _center(mean_of(second)), _center(mean_of(first))
    if over <= 0 or under <= 0:
        return None
    shares = mean_of([b / over - a / under for a, b in zip(first, second, strict=True)])
    return _factor(over / under, shares.ci95_half)


def _factor(number: float, half: float | None) -> Estimate:
    """A ratio with the half width of its logarithm's interval."""
    if half is None:
        return Estimate(number, None, None)
    return Estimate(number, number * math.exp(-half), number * math.exp(half))


def spread_of(values: Sequence[float]) -> Estimate | None:
    """The coefficient of variation, with the interval that the chi-square one of the standard deviation gives; None for
    fewer than two values.
    """
    mean = mean_of(values)
    if mean.sd is None or not mean.mean:
        return None
    degrees = mean.n - 1
    number = mean.sd / abs(mean.mean)
    tails = (0.5 - CONFIDENCE / 2, 0.5 + CONFIDENCE / 2)
    ends = [math.sqrt(degrees / _chi_square_quantile(degrees, tail)) for tail in tails]
    return Estimate(number, number * ends[0], number * ends[1])


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values corrected for being several tests at once, in the same order."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        highest = max(highest, min(1.0, p_values[index] * (len(p_values) - rank)))
        adjusted[index] = highest
    return adjusted


def difference_p(a: Mean, b: Mean) -> float | None:
    """Welch's two-sided p; without any spread 0 or 1 as the means differ or not; None with one value on a side that has
    to show its spread.
    """
    spread = _spread([_share(a), _share(b)])
    if spread is None:
        return None
    variance, degrees_of_freedom = spread
    if variance == 0:
        return float(a.mean == b.mean)
    return 2 * _t_tail(degrees_of_freedom, (_center(a) - _center(b)) / math.sqrt(variance))


def paired_p(differences: Sequence[float]) -> float | None:
    """Student's two-sided p that differences of pairs have the mean 0; without any spread 0 or 1 as they differ from 0
    or not; None for fewer than two.
    """
    mean = mean_of(differences)
    if mean.sd is None or mean.mean is None:
        return None
    if mean.sd == 0:
        return float(mean.mean == 0)
    return 2 * _t_tail(mean.n - 1, mean.mean * math.sqrt(mean.n) / mean.sd)


def fisher_exact(first: tuple[int, int], second: tuple[int, int]) -> float:
    """Two-sided p that two counts (successes, trials) are of one probability: the share of all tables that are no
    likelier than this one.
    """
    mine, others, successes = first[1], second[1], first[0] + second[0]
    least, most = max(0, successes - others), min(successes, mine)
    ways = [math.comb(mine, least) * math.comb(others, successes - least)]
    for k in range(least, most):
        # Each number from the one before: with many trials, to count the ways anew for each would take minutes.
        ways.append(ways[-1] * (mine - k) * (successes - k) // ((k + 1) * (others - successes + k + 1)))
    return sum(number for number in ways if number <= ways[first[0] - least]) / sum(ways)


@cache
def _special() -> Any:
    """mpmath: importing it takes longer than most commands that need none of it."""
    import mpmath  # noqa: PLC0415

    return mpmath


def _t_tail(degrees_of_freedom: float, t: float) -> float:
    """The probability that Student's t is beyond |t|, on one side."""
    share = degrees_of_freedom / (degrees_of_freedom + t * t)
    return float(_special().betainc(degrees_of_freedom / 2, 0.5, 0, share, regularized=True)) / 2


def _beta_quantile(a: int, b: int, share: float) -> float:
    return _where(lambda x: _beta_share(a, b, float(x)) - share, 0.0, 1.0)


def _beta_share(a: int, b: int, x: float) -> float:
    """The regularized incomplete beta function: of large numbers by its continued fraction (DLMF 8.17.22), because
    mpmath takes seconds for thousands of trials and hours for a hundred thousand.
    """
    if a + b <= FEW or x in (0, 1):
        return float(_special().betainc(a, b, 0, x, regularized=True))
    if x * (a + b + 2) > a + 1:
        return 1 - _beta_share(b, a, 1 - x)
    fraction = 1.0
    for m in range(4 * math.isqrt(a + b), -1, -1):
        even = (m + 1) * (b - m - 1) * x / ((a + 2 * m + 1) * (a + 2 * m + 2))
        fraction = 1 - (a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)) / (1 + even / fraction)
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(logarithm) / a / fraction


@cache
def _chi_square_quantile(degrees_of_freedom: int, tail: float) -> float:
    """The value that a chi-square number is beyond with the probability `tail`."""

    def share_beyond(x: float) -> float:
        return float(_special().gammainc(degrees_of_freedom / 2, x / 2, _special().inf, regularized=True))

    return _where(lambda x: share_beyond(x) - tail, 0.0, 16.0)


def _where(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that rises or falls all the way is 0; `high` is only a first guess, unless it is 1."""
    while high > 1 and function(low) * function(high) > 0:
        low, high = high, 2 * high
    # The last steps are of the size of a float's last digit: what is reached then is as near as floats come.
    return float(_special().findroot(function, (low, high), solver="anderson", tol=1e-32, maxsteps=100, verify=False))


def _center(mean: Mean) -> float:
    return mean.mean or 0.0


def _share(mean: Mean, scale: float = 1.0) -> tuple[float | None, int]:
    """The variance of a mean in units of `scale`, and its degrees of freedom."""
    return (None if mean.sd is None else mean.sd**2 / mean.n / scale**2, mean.n - 1)


def _half(shares: Sequence[tuple[float | None, int]]) -> float | None:
    """Half width of the 95 % interval of a sum of independent means (Welch, Satterthwaite)."""
    spread = _spread(shares)
    return None if spread is None else t_quantile(spread[1]) * math.sqrt(spread[0]) if spread[0] else 0.0


def _spread(shares: Sequence[tuple[float | None, int]]) -> tuple[float, float] | None:
    """The variance of a sum of independent means and its degrees of freedom (Welch, Satterthwaite); None where a mean
    shows no spread.
    """
    known = [(share, degrees) for share, degrees in shares if share is not None]
    if len(known) < len(shares):
        return None
    variance = math.fsum(share for share, _ in known)
    weights = math.fsum(share**2 / degrees for share, degrees in known if share)
    return variance, variance**2 / weights if variance else math.inf


def by_columns(rows: Iterable[ResultRow], by: Sequence[str]) -> dict[tuple[str, ...], list[ResultRow]]:
    """Rows by the texts that they have in these columns, in the order of the first row of each."""
    members: dict[tuple[str, ...], list[ResultRow]] = {}
    for row in rows:
        members.setdefault(tuple(row.get(name, "") for name in by), []).append(row)
    return members


def group_rows(rows: Sequence[ResultRow], by: Sequence[str], metrics: Sequence[str]) -> list[Group]:
    """Rows of results.csv grouped by the values of the columns `by`, groups in the order of their first row.

    Only completed rows enter a mean, and of those only where the metric has a finite number.
    """
    groups = []
    for key, group in by_columns(rows, by).items():
        status = [row.get("status", "") for row in group]
        done = [row for row in group if row.has_completed]
        counts = {name: status.count(name) for name in ("completed", *OTHER_ENDS)}
        means = {
            metric: mean_of([row.numbers[metric] for row in done if metric in row.numbers], _ceiling(metric, done))
            for metric in metrics
        }
        ended = counts["completed"] + counts["incomplete"]
        means = {metric: replace(mean, is_partial=mean.n < ended) for metric, mean in means.items()}
        groups.append(Group(key, means=means, **counts))
    return groups


def _ceiling(metric: str, rows: Sequence[ResultRow]) -> float:
    """What a rate or a share of the link's rate cannot be above: that rate, which goodput and utilization of a row
    give.
    """
    for name, most in CEILINGS.items():
        if metric.endswith(name):
            return most
    shares = [
        (row.numbers.get(metric), row.numbers.get(f"{metric.removesuffix('goodput_bps')}utilization"))
        for row in rows
        if metric.endswith("goodput_bps")
    ]
    return max((goodput / share for goodput, share in shares if goodput is not None and share), default=math.inf)


def other_ends(groups: Sequence[Group]) -> list[str]:
    """The ways in which cells ended that did not complete, in a fixed order; those that occur."""
    return [name for name in OTHER_ENDS if any(getattr(group, name) for group in groups)]


def finite(text: str) -> float | None:
    """The number that a text is; None for another text, and for what is not finite."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
