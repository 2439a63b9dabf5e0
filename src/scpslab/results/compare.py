"""Two runs beside each other: for every point that both have, the difference of each metric's means with Welch's interval.

Many differences are looked at together: p values are corrected by Holm's method over all of them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table

from scpslab.errors import ResultError
from scpslab.results.csv_text import csv_text
from scpslab.results.statistics import Estimate, Mean, clopper_pearson, difference_p, fisher_exact, holm, mean_of, number_in, ratio_of, sum_of
from scpslab.results.table import Results, summarise, with_interval

FORMAT = 1
SIGNIFICANT = 0.05
COMPLETION = "completion_pct"
COLUMNS = ("metric", "first_mean", "first_n", "second_mean", "second_n", "difference", "ci95_low", "ci95_high", "ratio", "p", "p_holm")


@dataclass(frozen=True)
class Pair:
    """One metric at one point: the two means, second less first, second over first, and p before and after Holm's correction."""

    key: tuple[str, ...]
    metric: str
    first: Mean
    second: Mean
    difference: Estimate | None
    ratio: Estimate | None
    p: float | None
    p_holm: float | None = None

    @property
    def is_certain(self) -> bool:
        """Whether the difference is more than spread, all comparisons considered."""
        return self.p_holm is not None and self.p_holm < SIGNIFICANT


@dataclass(frozen=True)
class Comparison:
    """All pairs, the axes that name their points, and the points that only one of the runs has."""

    names: tuple[str, str]
    by: tuple[str, ...]
    pairs: tuple[Pair, ...]
    only_first: tuple[tuple[str, ...], ...]
    only_second: tuple[tuple[str, ...], ...]
    is_same: bool


def compare(first: Results, second: Results, by: Sequence[str] = (), metrics: Sequence[str] = ()) -> Comparison:
    """Compares two runs at the points of the axes `by` (default: all that both have) in the metrics named (default: the telling ones).

    Raises:
        UsageError: an axis or metric that a run does not have.
        ResultError: no point in common.
    """
    shared = tuple(by) or tuple(name for name in first.axes if name in second.axes)
    wanted = tuple(metrics) or tuple(name for name in summarise(first, shared).metrics if name in second.metrics)
    tables = [_by_point(summarise(results, shared, wanted).results, shared) for results in (first, second)]
    points = [key for key in tables[0] if key in tables[1]]
    if not points:
        raise ResultError(f"{first.run_dir}, {second.run_dir}: found no point of {', '.join(shared) or 'the sweep'} in common; expected one. Choose with --by.")
    pairs = [_pair(key, metric, tables[0][key], tables[1][key]) for key in points for metric in (*wanted, COMPLETION)]
    # Completion is compared where something did not complete.
    pairs = [pair for pair in pairs if pair.metric != COMPLETION or pair.first.mean != 100 or pair.second.mean != 100]
    corrected = iter(holm([pair.p for pair in pairs if pair.p is not None]))
    return Comparison(
        (first.run_dir.name, second.run_dir.name),
        shared,
        tuple(pair if pair.p is None else _with(pair, next(corrected)) for pair in pairs),
        tuple(key for key in tables[0] if key not in tables[1]),
        tuple(key for key in tables[1] if key not in tables[0]),
        _same(first) == _same(second),
    )


def as_table(comparison: Comparison) -> Table:
    """The comparison for the terminal; certain differences are bold."""
    table = Table(title=f"{comparison.names[0]}  against  {comparison.names[1]}", title_justify="left", header_style="bold")
    for name in (*comparison.by, "metric"):
        table.add_column(name)
    for name in ("first", "second", "second - first", "ratio", "p (Holm)"):
        table.add_column(name, justify="right")
    for pair in comparison.pairs:
        difference = _interval(pair.difference)
        p = "–" if pair.p_holm is None else f"{pair.p_holm:.2g}"
        cells = (*pair.key, pair.metric, with_interval(pair.first), with_interval(pair.second), difference, _short(pair.ratio), p)
        table.add_row(*cells, style="bold" if pair.is_certain else None)
    return table


def notes(comparison: Comparison) -> list[str]:
    """What a reader must know beside the numbers."""
    certain = sum(pair.is_certain for pair in comparison.pairs)
    tested = sum(pair.p is not None for pair in comparison.pairs)
    found = [
        f"{certain} of {tested} differences are certain: p below {SIGNIFICANT} after Holm's correction for {tested} comparisons; Welch's test, means ± 95 %.",
    ]
    if comparison.is_same:
        found.append("Both runs have the same rows.")
    for name, keys in zip(comparison.names, (comparison.only_first, comparison.only_second), strict=True):
        if keys:
            found.append(f"only in {name}: {'; '.join(' '.join(key) for key in keys[:5])}{' …' if len(keys) > 5 else ''}")
    return found


def as_csv(comparison: Comparison) -> str:
    """One line a pair."""
    rows = [[*pair.key, *("" if value is None else value for value in _fields(pair).values())] for pair in comparison.pairs]
    return csv_text([[*comparison.by, *COLUMNS], *rows])


def as_json(comparison: Comparison) -> str:
    """The same as one JSON object."""
    pairs = [{"axes": dict(zip(comparison.by, pair.key, strict=True)), **_fields(pair)} for pair in comparison.pairs]
    fields = {"format": FORMAT, "runs": comparison.names, "by": comparison.by, "same_rows": comparison.is_same, "pairs": pairs}
    return json.dumps(fields, indent=1) + "\n"


def _by_point(results: Results, by: Sequence[str]) -> dict[tuple[str, ...], list[dict[str, str]]]:
    points: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in results.rows:
        points.setdefault(tuple(row.get(name, "") for name in by), []).append(row)
    return points


def _pair(key: tuple[str, ...], metric: str, first: list[dict[str, str]], second: list[dict[str, str]]) -> Pair:
    if metric == COMPLETION:
        return _completion(key, first, second)
    values = [[value for row in rows if row["status"] == "completed" and (value := number_in(row, metric)) is not None] for rows in (first, second)]
    means = [mean_of(part) for part in values]
    difference = sum_of([means[1]], [means[0]])
    return Pair(key, metric, means[0], means[1], difference, ratio_of([means[1]], [means[0]]), difference_p(*values))


def _completion(key: tuple[str, ...], first: list[dict[str, str]], second: list[dict[str, str]]) -> Pair:
    """Shares of transfers that completed, in percent, by Fisher's exact test; the difference has no interval of its own."""
    counts = []
    for rows in (first, second):
        status = [row["status"] for row in rows]
        counts.append((status.count("completed"), status.count("completed") + status.count("incomplete")))
    means = [Mean(tried, 100 * done / tried if tried else None, None, _half_of(done, tried)) for done, tried in counts]
    p = fisher_exact(*counts) if all(tried for _, tried in counts) else None
    return Pair(key, COMPLETION, means[0], means[1], sum_of([means[1]], [means[0]]), None, p)


def _half_of(done: int, tried: int) -> float:
    """Half the width of the exact interval, in percent: what a table can show of an interval that is not symmetric."""
    low, high = clopper_pearson(done, tried)
    return 50 * (high - low)


def _with(pair: Pair, p_holm: float) -> Pair:
    return Pair(pair.key, pair.metric, pair.first, pair.second, pair.difference, pair.ratio, pair.p, p_holm)


def _same(results: Results) -> list[tuple[str, ...]]:
    return [tuple(row.values()) for row in results.rows]


def _fields(pair: Pair) -> dict[str, str | float | int | None]:
    difference = pair.difference
    values: tuple[str | float | int | None, ...] = (
        pair.metric,
        pair.first.mean,
        pair.first.n,
        pair.second.mean,
        pair.second.n,
        difference.number if difference else None,
        difference.low if difference else None,
        difference.high if difference else None,
        pair.ratio.number if pair.ratio else None,
        pair.p,
        pair.p_holm,
    )
    return dict(zip(COLUMNS, values, strict=True))


def _interval(estimate: Estimate | None) -> str:
    if estimate is None:
        return "–"
    half = None if estimate.high is None else estimate.high - estimate.number
    return with_interval(Mean(2, estimate.number, None, half))


def _short(estimate: Estimate | None) -> str:
    return "–" if estimate is None else f"{estimate.number:.3g}"
