"""Differences between runs, or between the values of one axis of a run: at every point that two sides share, each
metric's difference, ratio and p.

Cells that met the same random errors and traffic (ADR 0011) are compared in pairs. All p of a comparison are corrected
together by Holm's method.
"""

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from scpslab import plan as plans
from scpslab.analysis.collect import columns_by_workload
from scpslab.analysis.effects import NO_EFFECT, Effect, Method, completion_p, effect
from scpslab.analysis.run import manifest_of, open_run
from scpslab.analysis.statistics import Mean, ResultRow, by_columns, clopper_pearson, holm, mean_of, sum_of
from scpslab.analysis.table import Results, summarise
from scpslab.core.choices import one_of
from scpslab.core.errors import ResultError, UsageError, some_of
from scpslab.core.strict_json import Json, section
from scpslab.plan import Plan
from scpslab.plan.chances import chances, drawn
from scpslab.runs import RunFolder

SIGNIFICANT = 0.05
# Of a ratio that is printed.
RATIO_DIGITS = 3
COMPLETION = "completion_pct"
# Numbers that follow from another: to compare them too would only make the correction harder.
FOLLOWS = {"goodput_bps": "transfer_s", "throughput_report_pct": "transfer_s", "utilization": "transfer_s"}
# What ranks take for a transfer that did not finish: it is longer, or slower, than every finished one.
WORST = dict.fromkeys(("transfer_s", "transfer_from_syn_s", "user_s", "client_total_s", "mix_s"), math.inf)
WORST |= dict.fromkeys(FOLLOWS, -math.inf)
ENDED = ("completed", "incomplete")
SAME_DRAWS, NOTHING_DRAWN = "same errors and traffic", "nothing is drawn: no random errors or traffic"
# What the manifests of two runs must share for their cells to run alike.
MANIFEST_KEYS = ("engine", "engine_hashes", "seed")
# What names a cell, and what is drawn: no conditions that somebody chose.
NAMES_OF_CELLS = ("id", "scenario", "axes", "repeat")
SEEDS = ("kernel_seed", "seed", "seeds", "key_seed", "payload_seed", "rates_bps")

Key = tuple[str, ...]
Rows = tuple[list[ResultRow], list[ResultRow]]


@dataclass(frozen=True)
class Options:
    """What is compared: at the values of the axes `by`, the columns `metrics`; with `all_pairs` each side with every
    other, not only with the first.
    """

    by: Sequence[str] = ()
    metrics: Sequence[str] = ()
    test: Method = Method.MEANS
    all_pairs: bool = False


DEFAULTS = Options()


@dataclass(frozen=True)
class Pairing:
    """How cells of two sides belong together: in pairs, or as two independent groups, and why."""

    is_paired: bool
    why: str


@dataclass(frozen=True)
class Pair:
    """One metric of two sides at one point: second less first, second over first, and p before and after Holm's
    correction. `unfinished`: how many values of each side are transfers that did not finish, longer than all others.
    """

    key: Key
    sides: tuple[str, str]
    metric: str
    first: Mean
    second: Mean
    pairing: Pairing
    effect: Effect
    p_holm: float | None = None
    unfinished: tuple[int, int] = (0, 0)

    @property
    def numbers(self) -> tuple[int, int]:
        """How many values each side has, with the unfinished ones."""
        return self.first.n + self.unfinished[0], self.second.n + self.unfinished[1]

    @property
    def is_exact(self) -> bool:
        """Whether no chance is in the difference."""
        return self.pairing.why == NOTHING_DRAWN and self.first.n == self.second.n == 1

    @property
    def is_certain(self) -> bool:
        """Whether the difference is more than spread, all comparisons considered, and large enough to be seen: a ratio
        that is printed as 1 is none.
        """
        ratio = self.effect.ratio
        is_seen = ratio is None or f"{ratio.number:.{RATIO_DIGITS}g}" != "1"
        return is_seen and self.p_holm is not None and self.p_holm < SIGNIFICANT


@dataclass(frozen=True)
class Differing:
    """A setting that differs between two runs, at how many of their points, with the values at the first of these; None
    where a plan does not have it. In JSON it has these names.
    """

    first: str
    second: str
    setting: str
    points: int
    first_value: str | None
    second_value: str | None


@dataclass(frozen=True)
class Comparison:
    """All pairs, the axes that name their points, the points that not all sides have, and in what the conditions of
    runs differ.
    """

    title: str
    names: tuple[str, ...]
    axis: str | None
    by: tuple[str, ...]
    options: Options
    pairs: tuple[Pair, ...]
    not_shared: Mapping[str, tuple[Key, ...]]
    metrics_left_out: Mapping[str, tuple[str, ...]]
    pooled: tuple[str, ...] = ()
    left_out_repeats: int = 0
    conditions: tuple[Differing, ...] = ()
    is_same: bool = False


@dataclass(frozen=True)
class Side:
    """One side: its name, its rows, and the plan of each row's cell where the cells are there."""

    name: str
    rows: tuple[ResultRow, ...]
    plans: Mapping[str, Plan] = field(default_factory=dict)
    draws: dict[str, Mapping[str, object]] = field(default_factory=dict)

    def drawn(self, row: ResultRow) -> Mapping[str, object] | None:
        """What chance did to a row's cell; None if its plan is not there."""
        cell = row["cell"]
        if cell not in self.plans:
            return None
        return self.draws.setdefault(cell, drawn(self.plans[cell]))


def compare_runs(runs: Sequence[Results], options: Options = DEFAULTS) -> Comparison:
    """Compares runs with the first of them, at the points of the axes that all have (or of `options.by`).

    Raises:
        UsageError: an axis or metric that a run does not have, or fewer than two runs.
        ResultError: two of them have no point in common.
    """
    if len(runs) < 2:
        expected = f"expected another run, or an axis of this one. {_axes_of(runs[0])}"
        raise UsageError(f"{runs[0].run_dir}: found one run and no --axis; {expected}")
    shared = tuple(name for name in runs[0].axes if all(name in run.axes for run in runs))
    by = tuple(options.by) or shared
    asked = tuple(options.metrics)
    chosen = [summarise(run, by, asked).metrics for run in runs]
    wanted = asked or _independent(name for name in chosen[0] if all(name in run.names for run in runs))
    names = _names(runs)
    sides = [Side(name, run.rows, plans_of(run)) for name, run in zip(names, runs, strict=True)]
    comparison = _compare(sides, by, [name for name in shared if name not in by], wanted, options)
    conditions = [
        differing
        for one, other in _contrasts(range(len(runs)), all_pairs=options.all_pairs)
        for differing in _conditions((sides[one], sides[other]), (runs[one], runs[other]), by)
    ]
    return replace(
        comparison,
        conditions=tuple(conditions),
        metrics_left_out={
            name: tuple(column for column in _independent(had) if column not in wanted)
            for name, had in zip(names, chosen, strict=True)
        },
        is_same=len({tuple(tuple(row.values()) for row in run.rows) for run in runs}) == 1,
    )


def compare_axis(results: Results, axis: str, against: str | None = None, options: Options = DEFAULTS) -> Comparison:
    """Compares the values of one axis of a run with the value `against` (default: the first), at the points of its
    other axes.

    Raises:
        UsageError: an axis, value or metric that the run does not have.
        ResultError: two values have no point in common.
    """
    if axis not in results.axes:
        raise UsageError(f'{results.run_dir}: --axis: found "{axis}"; {one_of(axis, results.axes)}')
    if axis in options.by:
        raise UsageError(
            f"{results.run_dir}: --by: found {axis}, whose values are compared; expected other axes. Leave it out."
        )
    values = list(dict.fromkeys(row[axis] for row in results.rows))
    if len(values) < 2:
        expected = f"expected at least two. {_axes_of(results)}"
        raise UsageError(f"{results.run_dir}: --axis: found {axis} with the value {values[0]} only; {expected}")
    if against is not None:
        if against not in values:
            expected = f"expected a value of {axis}: {', '.join(values)}. Choose one of these."
            raise UsageError(f'{results.run_dir}: --against: found "{against}"; {expected}')
        values = [against, *(value for value in values if value != against)]
    others = tuple(name for name in results.axes if name != axis and not _is_decided(name, axis, results.rows))
    by = tuple(options.by) or others
    chosen = summarise(results, (axis, *by), options.metrics).metrics
    wanted = tuple(options.metrics) or _independent(chosen)
    planned = plans_of(results)
    sides = [Side(value, tuple(row for row in results.rows if row[axis] == value), planned) for value in values]
    comparison = _compare(sides, by, [name for name in others if name not in by], wanted, options)
    return replace(comparison, axis=axis, title=f"{results.run_dir.name}: {axis}")


def _is_decided(name: str, axis: str, rows: Iterable[ResultRow]) -> bool:
    """Whether an axis of several values has one for each value of another axis, as the stack has that cases set."""
    pairs = {(row[axis], row[name]) for row in rows}
    return len(pairs) == len({value for value, _ in pairs}) and len({value for _, value in pairs}) > 1


def _independent(metrics: Iterable[str]) -> tuple[str, ...]:
    """Metrics without those that follow from another of them."""
    all_metrics = tuple(metrics)
    return tuple(name for name in all_metrics if FOLLOWS.get(name) not in all_metrics)


def plans_of(results: Results) -> dict[str, Plan]:
    """The plans of a run's cells by their id; none if the folder has no cells any more."""
    has_cells = RunFolder(results.run_dir).planned_cells()
    return {cell.id: cell.plan for cell in open_run(results.run_dir).cells} if has_cells else {}


def _compare(
    sides: Sequence[Side], by: Sequence[str], pooled: Sequence[str], metrics: Sequence[str], options: Options
) -> Comparison:
    """All sides at their points. Pairs are looked for by the axes that are taken together (`pooled`) and the repeat."""
    tables = [by_columns(side.rows, by) for side in sides]
    keys = list(dict.fromkeys(key for table in tables for key in table))
    pairs: list[Pair] = []
    left_out = 0
    contrasts = _contrasts(range(len(sides)), all_pairs=options.all_pairs)
    for one, other in contrasts:
        if not any(key in tables[one] and key in tables[other] for key in keys):
            found = f"found no point of {', '.join(by) or 'the sweep'} in common"
            advice = "Choose axes with --by."
            raise ResultError(f"{sides[one].name}, {sides[other].name}: {found}; expected one. {advice}")
    for key in keys:
        for one, other in contrasts:
            if key not in tables[one] or key not in tables[other]:
                continue
            rows, pairing = _paired((sides[one], sides[other]), (tables[one][key], tables[other][key]), pooled)
            if pairing.is_paired:
                left_out += len(tables[one][key]) + len(tables[other][key]) - 2 * len(rows[0])
            names = sides[one].name, sides[other].name
            chosen = sides[one], sides[other]
            pairs += [_pair(key, chosen, metric, rows, pairing, options.test) for metric in metrics]
            completion = _completion(key, names, rows, pairing)
            # Completion is compared where something did not complete.
            pairs += [completion] if completion.first.mean != 100 or completion.second.mean != 100 else []
    rows_of_all = [row for side in sides for row in side.rows]
    return Comparison(
        title="  against  ".join(side.name for side in sides),
        names=tuple(side.name for side in sides),
        axis=None,
        by=tuple(by),
        options=options,
        pairs=corrected(pairs),
        not_shared={
            side.name: tuple(key for key in table if any(key not in other for other in tables))
            for side, table in zip(sides, tables, strict=True)
        },
        metrics_left_out={},
        pooled=tuple(name for name in pooled if len({row[name] for row in rows_of_all}) > 1),
        left_out_repeats=left_out,
    )


def corrected(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """The pairs with Holm's correction over all that have a p: one family."""
    holms = iter(holm([pair.effect.p for pair in pairs if pair.effect.p is not None]))
    return tuple(pair if pair.effect.p is None else replace(pair, p_holm=next(holms)) for pair in pairs)


def _contrasts(sides: Iterable[int], *, all_pairs: bool) -> list[tuple[int, int]]:
    return [(one, other) for one, other in itertools.combinations(sides, 2) if all_pairs or one == 0]


def _paired(sides: tuple[Side, Side], rows: Rows, pooled: Sequence[str]) -> tuple[Rows, Pairing]:
    """The rows of a point in pairs (same repeat, same draws) if that is what they are; otherwise as they came, with the
    reason.
    """
    indexed = [{(*(row[name] for name in pooled), row["repeat"]): row for row in part} for part in rows]
    draws = [[side.drawn(row) for row in part] for side, part in zip(sides, rows, strict=True)]
    if any(found is None for part in draws for found in part):
        return rows, Pairing(is_paired=False, why="the cells are not there, so nothing says which errors they met")
    if not any(found for part in draws for found in part):
        # Of one cell only its plan says whether another repeat would be the same.
        single = (side.plans[part[0]["cell"]] for side, part in zip(sides, rows, strict=True) if len(part) == 1)
        meanwhile = tuple(dict.fromkeys(name for plan in single for name in chances(plan)))
        why = f"one cell says nothing of {some_of(meanwhile)}, which may draw" if meanwhile else NOTHING_DRAWN
        return rows, Pairing(is_paired=False, why=why)
    if any(len(index) < len(part) for index, part in zip(indexed, rows, strict=True)):
        return rows, Pairing(is_paired=False, why="several cells of a side have the same repeat")
    common = [key for key in indexed[0] if key in indexed[1]]
    if not common:
        return rows, Pairing(is_paired=False, why="no repeat in common")
    pairs = [(indexed[0][key], indexed[1][key]) for key in common]
    for first, second in pairs:
        one, other = sides[0].drawn(first) or {}, sides[1].drawn(second) or {}
        if differ := [place for place in dict.fromkeys((*one, *other)) if one.get(place) != other.get(place)]:
            return rows, Pairing(is_paired=False, why=f"{some_of(differ, 4)} differ")
    return ([first for first, _ in pairs], [second for _, second in pairs]), Pairing(is_paired=True, why=SAME_DRAWS)


def _unfinished_value(side: Side, row: ResultRow, metric: str) -> tuple[float, int] | None:
    """What a metric of a transfer that did not finish is in ranks, and the timeout of that transfer: longer than all
    others, or slower; None where a cell does not wait for this transfer alone.
    """
    plan = side.plans.get(row["cell"])
    required = [workload for workload in plan.cell.workloads if workload.required] if plan else []
    waits = {(workload.part_of, getattr(workload, "timeout_ns", None)) for workload in required}
    if plan is None or len(waits) != 1:
        return None
    (own, timeout_ns), columns = *waits, columns_by_workload(plan)
    bare = next((name for name in WORST if metric in (columns.get((own, name)), f"{own}_{name}")), None)
    return None if bare is None or timeout_ns is None else (WORST[bare], timeout_ns)


def _ranked(sides: tuple[Side, Side], rows: Rows, metric: str) -> float | None:
    """What ranks take a metric for where a transfer did not finish; None if they leave it out, as timeouts differ."""
    found = {_unfinished_value(side, row, metric) for side, part in zip(sides, rows, strict=True) for row in part}
    (only, *others) = found
    return None if others or only is None else only[0]


def _pair(key: Key, sides: tuple[Side, Side], metric: str, rows: Rows, pairing: Pairing, test: Method) -> Pair:
    unfinished = _ranked(sides, rows, metric) if test is Method.RANKS else None

    def value(row: ResultRow) -> float | None:
        return row.numbers.get(metric) if row.has_completed else unfinished if row["status"] == "incomplete" else None

    columns = [[value(row) for row in part] for part in rows]
    if pairing.is_paired:
        both = [(a, b) for a, b in zip(*columns, strict=True) if a is not None and b is not None]
        first, second = [a for a, _ in both], [b for _, b in both]
    else:
        first, second = ([value for value in part if value is not None] for part in columns)
    is_exact = pairing.why == NOTHING_DRAWN and all(part and min(part) == max(part) for part in (first, second))
    if is_exact:
        # The same cell again says nothing more.
        first, second = first[:1], second[:1]
    difference = effect(first, second, test, paired=pairing.is_paired)
    difference = replace(difference, p=None, least_p=None) if is_exact else difference
    counted = sum(map(math.isinf, first)), sum(map(math.isinf, second))
    names = sides[0].name, sides[1].name
    means = _mean(first, rows[0]), _mean(second, rows[1])
    return Pair(key, names, metric, *means, pairing, difference, unfinished=counted)


def _mean(values: Sequence[float], rows: Sequence[ResultRow]) -> Mean:
    """The mean of what finished, and the median of all; marked if cells that ended are not in it."""
    mean = mean_of([value for value in values if math.isfinite(value)])
    ended = sum(row["status"] in ENDED for row in rows)
    return replace(mean, median=median(values) if values else None, is_partial=len(values) < ended)


def _completion(key: Key, names: tuple[str, str], rows: Rows, pairing: Pairing) -> Pair:
    """Shares of transfers that completed, in percent.

    Cells that failed say nothing about a protocol; of a pair, both must have ended.
    """
    ended = [[row["status"] in ENDED for row in part] for part in rows]
    if pairing.is_paired:
        ended = [[a and b for a, b in zip(*ended, strict=True)]] * 2
    done = [
        [row.has_completed for row, has_ended in zip(part, ends, strict=True) if has_ended]
        for part, ends in zip(rows, ended, strict=True)
    ]
    parts = [
        Mean(len(part), 100 * sum(part) / len(part) if part else None, None, _half_of(sum(part), len(part)))
        for part in done
    ]
    p, least_p = completion_p(done[0], done[1], paired=pairing.is_paired)
    difference = Effect(sum_of([parts[1]], [parts[0]]), None, p, least_p) if p is not None else NO_EFFECT
    return Pair(key, names, COMPLETION, parts[0], parts[1], pairing, difference)


def _half_of(done: int, tried: int) -> float:
    """Half the width of the exact interval, in percent: what a table can show of an interval that is not symmetric."""
    low, high = clopper_pearson(done, tried)
    return 50 * (high - low)


def _conditions(sides: tuple[Side, Side], runs: tuple[Results, Results], by: Sequence[str]) -> Iterator[Differing]:
    """In what two runs differ besides what chance did: facts of their manifests, and settings of the plans of their
    first cells at each shared point.
    """
    names = sides[0].name, sides[1].name
    one, other = (manifest_of(run.run_dir) for run in runs)
    for name in MANIFEST_KEYS:
        if getattr(one, name) != getattr(other, name):
            yield Differing(*names, name, 0, str(getattr(one, name)), str(getattr(other, name)))
    tables = [by_columns(side.rows, by) for side in sides]
    settings: dict[str, list[tuple[str | None, str | None]]] = {}
    for key in (key for key in tables[0] if key in tables[1]):
        first, second = (side.plans.get(table[key][0]["cell"]) for side, table in zip(sides, tables, strict=True))
        if first is not None and second is not None:
            for setting, values in _differences(first, second):
                settings.setdefault(setting, []).append(values)
    for setting, found in settings.items():
        yield Differing(*names, setting, len(found), *found[0])


def _names(runs: Sequence[Results]) -> tuple[str, ...]:
    """The names of the runs' folders; whole paths where two folders have one name, and a number where one run is named
    twice.
    """
    names = [run.run_dir.name for run in runs]
    if len(set(names)) < len(names):
        names = [str(run.run_dir) for run in runs]
    return tuple(name if names.index(name) == number else f"{name} ({number + 1})" for number, name in enumerate(names))


def _axes_of(results: Results) -> str:
    axes = [name for name in results.axes if len({row[name] for row in results.rows}) > 1]
    return f"Choose --axis {' or '.join(axes)}." if axes else "Name a second run."


def _differences(first: Plan, second: Plan) -> Iterator[tuple[str, tuple[str | None, str | None]]]:
    """The settings that differ, in the order of the plan; seeds and what is drawn with them are left out."""
    one, other = (dict(_of_plan(plan)) for plan in (first, second))
    for name in dict.fromkeys((*one, *other)):
        if one.get(name) != other.get(name):
            yield name, (one.get(name), other.get(name))


def _of_plan(plan: Plan) -> Iterator[tuple[str, str]]:
    written = plans.write(plan.as_planned)
    for name, part in (section(written, "network") | section(written, "cell")).items():
        if name not in (*NAMES_OF_CELLS, *SEEDS):
            yield from _settings(name, part)


def _settings(place: str, value: Json) -> Iterator[tuple[str, str]]:
    """Every value of a plan with its place; parts of a list that have names are found by them."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            if name not in SEEDS:
                yield from _settings(f"{place}.{name}", part)
    elif isinstance(value, list) and any(isinstance(part, Mapping) for part in value):
        for number, part in enumerate(value):
            yield from _settings(f"{place}.{_name(part) or number}", part)
    else:
        yield place, json.dumps(value)


def _name(part: Json) -> str:
    """What finds a part of a list in another plan; "" if nothing does."""
    if not isinstance(part, Mapping):
        return ""
    return str(part.get("name") or ".".join(str(part[key]) for key in ("link", "direction") if key in part))
