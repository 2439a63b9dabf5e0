"""The table of a run: results.csv grouped by axes, means with 95 % intervals, on the terminal or as csv or json."""

import csv
import difflib
import io
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any, TypeAlias

from scpslab.analysis.collect import AFTER_AXES, BEFORE_AXES, Rows, collect, columns_by_workload
from scpslab.analysis.metrics.data_flows import families
from scpslab.analysis.output import NOTHING, Column, Document, Report, Row, nine_digits, numbers
from scpslab.analysis.run import natural, open_cell, resolved_fields
from scpslab.analysis.statistics import (
    ENOUGH,
    OTHER_ENDS,
    Group,
    Mean,
    ResultRow,
    by_columns,
    finite,
    group_rows,
    other_ends,
)
from scpslab.core.contents import LARGEST_RESULTS, content_of
from scpslab.core.errors import ResultError, UsageError, harmless
from scpslab.core.strict_json import items, section, text
from scpslab.documents.yaml_lines import value_text
from scpslab.runs import RunFolder
from scpslab.runs.run import json_object
from scpslab.runs.store import own_store

FORMAT = 1
DELETE = "Delete the file: it is rebuilt from the cells."
# What a reader asks for first, in this order, and its meaning; the ones that the run has are shown.
HEADLINE = {
    "transfer_s": "transfer time in seconds",
    "throughput_report_pct": "goodput in percent of the link's rate, in the FY97 report's unit (2.3 % less)",
    "mix_s": "time from the first start of a mix's files to the end of the last",
    "file_mean_s": "mean time of a mix's files in seconds",
    "utilization": "goodput as a share of the slowest hop's rate",
    "goodput_bps": "payload in bits per second",
    "retransmissions": "segments sent again",
    "rtos": "retransmission timeouts",
    "rtt_mean_ms": "mean round-trip time in milliseconds",
    "received": "echo replies that came back",
    "jitter_ms": "mean deviation of the transit time in milliseconds",
    "lost_packets": "datagrams that did not arrive, by iperf3's receiver",
}
HEADLINE_COUNT = 4
# Where gateways answer in a receiver's place, what a sender knows of a transfer's end says little.
FOR_USERS, GATEWAYS = "user_s", {"gateway", "host-gateway"}
# A terminal, unless somebody has widened it; around a column of a table are three characters.
TERMINAL_CHARACTERS, AROUND_CHARACTERS = 80, 3
# Values that lie nearer to each other, as a share of their mean, are shown as one.
AS_ONE = 1e-4
# From a workload of a cell and a metric to the column.
Owned: TypeAlias = dict[tuple[str, str], str]
# Behind a mean of fewer cells than ended.
PARTIAL = "*"
OF_PARTS = f"{PARTIAL} of fewer cells than ended: those that did not complete, or were not measured, have no value."
# What is said of a mean in CSV and JSON.
PARTS = ("mean", "sd", "ci95_half", "n")


@dataclass(frozen=True)
class Results:
    """results.csv as read: column names in order, the swept axes among them, the metrics, and one row per cell.

    `owned`: the columns of each workload's metric, of which a cell has one. A row has it by `WORKLOAD_METRIC`, too.
    `first`: the metric that a reader of this scenario asks for before the usual ones, if there is one.
    """

    run_dir: Path
    columns: tuple[str, ...]
    axes: tuple[str, ...]
    metrics: tuple[str, ...]
    rows: tuple[ResultRow, ...]
    owned: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    first: str | None = None

    @property
    def telling(self) -> tuple[str, ...]:
        """The metrics that a reader asks for first."""
        topologies = {row.get("topology") for row in self.rows}
        elsewhere = {name for family in families() for name, own in family.of_topology.items() if topologies != {own}}
        # Where a column has another name in some cells, the one that all have.
        own = ((metric, columns, f"{name}_{metric}") for (name, metric), columns in self.owned.items())
        owned = [(metric, columns[0] if len(columns) == 1 else whole) for metric, columns, whole in own]
        names = dict.fromkeys((self.first, *HEADLINE) if self.first else HEADLINE)
        named = {name: [column for metric, column in owned if metric == name] or [name] for name in names}
        columns = dict.fromkeys(column for name, mine in named.items() if name not in elsewhere for column in mine)
        return tuple(column for column in columns if any(column in row.numbers for row in self.rows))

    @property
    def names(self) -> tuple[str, ...]:
        """What metrics may be called."""
        return tuple(dict.fromkeys((*self.metrics, *map("_".join, self.owned))))


@dataclass(frozen=True)
class Summary:
    """A run's rows grouped by the axes `by`, with the means of `metrics`.

    `same`: the groups that are one cell again and again.
    """

    results: Results
    by: tuple[str, ...]
    metrics: tuple[str, ...]
    groups: tuple[Group, ...]
    same: frozenset[tuple[str, ...]] = frozenset()


def read_results(run_dir: Path, *, rebuild: bool = False, warn: Callable[[str], None] = lambda _: None) -> Results:
    """The run's results.csv, collected first when it is missing or older than a cell; `warn` as for `collect`.

    Raises:
        ResultError: no run, or a results.csv that is no table of this program.
    """
    path = RunFolder(run_dir).results
    if RunFolder(run_dir).manifest_file.is_file() and (lost := RunFolder(run_dir).lost_cells()):
        warn(lost)
    if rebuild or _is_stale(run_dir):
        collect(run_dir, warn, partial(Rows(own_store()).row, anew=rebuild))
    try:
        content = content_of(path, LARGEST_RESULTS).decode("utf-8", "replace")
        reader = csv.DictReader(io.StringIO(content, newline=""))
        reader.fieldnames = columns = tuple(map(harmless, reader.fieldnames or ()))
        rows = tuple(ResultRow({name: harmless(row.get(name) or "") for name in columns}) for row in reader)
    except (OSError, csv.Error) as error:
        raise ResultError(f"{path}: {error}; expected the table that this program writes. {DELETE}") from error
    if columns[: len(BEFORE_AXES)] != BEFORE_AXES or "reason" not in columns:
        found = "".join(letter if letter.isprintable() else "?" for letter in ",".join(columns[:4])[:60])
        raise ResultError(f'{path}: found the columns "{found}"; expected those of this program. {DELETE}')
    middle = columns[len(BEFORE_AXES) : columns.index("reason")]
    axes = tuple(name for name in middle if name not in AFTER_AXES)
    if "stack" in middle and (middle.index("stack") < len(axes) or len({row["stack"] for row in rows}) > 1):
        # An axis called stack stands among the axes; without one the column says what the plans say.
        axes = tuple(name for name in middle if name in axes or name == "stack")
    metrics = columns[columns.index("reason") + 1 :]
    of_cells, has_gateways = _owned(run_dir)
    owned: dict[tuple[str, str], tuple[str, ...]] = {}
    for place, name in (
        one for mine in {id(mine): mine for mine in of_cells.values()}.values() for one in mine.items()
    ):
        if name in metrics and name not in owned.get(place, ()):
            owned[place] = (*owned.get(place, ()), name)
    named = [_named(row, owned, of_cells.get(row["cell"], {})) for row in rows]
    scenario: Mapping[str, Any] = {}
    with suppress(ResultError):
        scenario = resolved_fields(RunFolder(run_dir).resolved)
    asked = scenario.get("metric") or (FOR_USERS if has_gateways else None)
    first = asked if isinstance(asked, str) else None
    return Results(run_dir, columns, axes, metrics, _in_order(scenario.get("sweep"), axes, named), owned, first)


def _in_order(sweep: object, axes: Sequence[str], rows: Sequence[ResultRow]) -> tuple[ResultRow, ...]:
    """The rows in the order of the scenario's sweep, the first axis slowest; values that it does not name come behind
    the others. Rows of results.csv stand in the order of texts and numbers, which needs no scenario.
    """
    places = {axis: values for axis, values in _places_of(sweep).items() if axis in axes}
    if not places:
        return tuple(rows)

    def key(row: ResultRow) -> list[tuple[Any, ...]]:
        return [_place_of(places.get(axis, {}), row[axis]) for axis in axes]

    return tuple(sorted(rows, key=key))


def _place_of(values: dict[str | float, int], text: str) -> tuple[Any, ...]:
    at = values.get(text, values.get(_number(text), -1))
    return (1, natural(text)) if at < 0 else (0, at)


def _number(text: str) -> float | str:
    return text if (number := finite(text)) is None else number


def _places_of(sweep: object) -> dict[str, dict[str | float, int]]:
    """The places of the values of each axis, by their texts, and by what these are as numbers."""
    found: dict[str, dict[str | float, int]] = {}
    for axis, spec in sweep.items() if isinstance(sweep, dict) else ():
        values = (spec.get("cases") or spec.get("values") or ()) if isinstance(spec, dict) else ()
        texts = [value_text(value) for value in values] if isinstance(values, dict | list | tuple) else []
        found[axis] = {name: place for place, text in enumerate(texts) for name in (text, _number(text))}
    return found


def _named(row: ResultRow, owned: Iterable[tuple[str, str]], mine: Owned) -> ResultRow:
    """A row with the column of each workload's metric by both names."""
    named = {"_".join(place): row.get(mine.get(place, ""), "") for place in owned}
    return ResultRow({**row, **{name: value for name, value in named.items() if value or name not in row}})


def _owned(run_dir: Path) -> tuple[dict[str, Owned], bool]:
    """The columns of the workloads of each cell, by its id, and whether some cell has gateways; cells whose workloads
    have the same names share them. A plan that cannot be read has none: whoever needs that cell says what is wrong.
    """
    has_gateways = False
    of_cells: dict[str, Owned] = {}
    shapes: dict[tuple[tuple[str | None, str | None], ...], Owned] = {}
    for files in sorted(RunFolder(run_dir).planned_cells(), key=lambda cell: cell.path):
        with suppress(ResultError):
            said = section(json_object(files.plan), "cell")
            has_gateways |= any(text(one, "kind") in GATEWAYS for one in items(said, "services", dict))
            shape = tuple((text(one, "name"), text(one, "kind")) for one in items(said, "workloads", dict))
            if shape not in shapes:
                shapes[shape] = columns_by_workload(open_cell(files.path).plan)
            of_cells[text(said, "id") or ""] = shapes[shape]
    return of_cells, has_gateways


def summarise(results: Results, by: Sequence[str] = (), metrics: Sequence[str] = ()) -> Summary:
    """Groups by the axes named (default: all of them) and takes the means of the metrics named (default: the telling
    ones).

    Raises:
        UsageError: an axis or metric that the run does not have.
    """
    known = tuple(dict.fromkeys((*results.axes, "scenario", "topology", "stack")))
    _require(results, by, known, "axis")
    _require(results, metrics, results.names, "metric")
    chosen_by = tuple(by) or results.axes
    chosen = tuple(metrics) or results.telling[:HEADLINE_COUNT]
    by_key = by_columns(results.rows, chosen_by)
    same = frozenset(key for key, rows in by_key.items() if _are_one_cell(results, rows))
    pooled = [name for name in results.axes if name not in chosen_by and len({row[name] for row in results.rows}) > 1]

    def said(key: tuple[str, ...], mean: Mean) -> Mean:
        if key in same:
            return Mean(min(1, mean.n), mean.mean, None, None, is_partial=mean.is_partial)
        # Cells of one repeat may have met the same errors: taken together, they are no independent values.
        return replace(mean, ci95_half=None) if pooled else mean

    groups = [
        replace(one, means={name: said(one.key, mean) for name, mean in one.means.items()})
        for one in group_rows(results.rows, chosen_by, chosen)
    ]
    return Summary(results, chosen_by, chosen, tuple(groups), same)


def _are_one_cell(results: Results, rows: Sequence[ResultRow]) -> bool:
    """Whether completed cells are repeats with one seed, as those are in which nothing is drawn, and the same to the
    last digit.
    """
    done = [row for row in rows if row.has_completed]
    return len(done) > 1 == len({(row.get("seed"), *map(row.get, results.metrics)) for row in done})


def narrow(run_dir: Path) -> Report:
    """The table of a run, as wide as a terminal."""
    return report(summarise(read_results(run_dir)), is_narrow=True)


def report(summary: Summary, *, is_narrow: bool = False) -> Report:
    """The summary as it is shown: mean ± half interval, n, and what did not complete; in the CSV and JSON the axes,
    counts, completion interval, then mean, sd, ci95_half and n of each metric. JSON has null for what cannot be said.

    `is_narrow`: shows only the first metrics, as many as fit a terminal.
    """
    others = other_ends(summary.groups)
    styles = {name: "red" if name == "failed" else "yellow" for name in others}
    shown = _fitting(summary, others) if is_narrow else summary.metrics
    columns = [*map(Column, summary.by), *numbers(*shown, "n")]
    columns += [Column(name, is_number=True, style=style) for name, style in styles.items()]
    rows: list[Row] = []
    previous: tuple[str, ...] = ()
    for group in summary.groups:
        cells = [*group.key, *(with_interval(group.means[name]) for name in shown)]
        cells.append("1" if group.key in summary.same else str(group.completed))
        cells += [str(getattr(group, name)) for name in others]
        begins = bool(previous) and len(group.key) > 1 and group.key[0] != previous[0]
        rows.append(Row(cells, begins_section=begins))
        previous = group.key
    document = {
        "format": FORMAT,
        "run": summary.results.run_dir.name,
        "by": list(summary.by),
        "metrics": list(summary.metrics),
        "groups": [_document(summary, group) for group in summary.groups],
        "unmeasured": [
            {"metric": name, "reason": why, "cells": count}
            for (name, why), count in sorted(_unmeasured(summary).items())
        ],
    }
    counts = ("completed", *OTHER_ENDS, "completion_ci95_low", "completion_ci95_high")
    header = [*summary.by, *counts, *(f"{name}_{part}" for name in summary.metrics for part in PARTS)]
    records: list[Sequence[object]] = [header, *(_record(summary, group) for group in summary.groups)]
    notes = _notes(summary)
    notes += _whose(summary, shown)
    if left_out := summary.metrics[len(shown) :]:
        notes.append(f"more columns: --metric {','.join(left_out)} (docs/columns.md lists all).")
    return Report(summary.results.run_dir.name, columns, rows, notes, records, document, json_indent=2)


def _whose(summary: Summary, shown: Sequence[str]) -> list[str]:
    """Whose the columns are that do not say it, where a cell has several workloads with columns."""
    owned = summary.results.owned
    owners: dict[str, list[str]] = {}
    for (own, metric), columns in owned.items():
        if metric in columns and metric in shown:
            owners.setdefault(own, []).append(metric)
    if len({own for own, _ in owned}) < 2 or not owners:
        return []
    return [f"{'; '.join(f'of {own}: ' + ', '.join(names) for own, names in owners.items())}."]


def _fitting(summary: Summary, others: Sequence[str]) -> tuple[str, ...]:
    """The first metrics, as many as fit a terminal beside the other columns; at least one."""
    keys = zip(*(group.key for group in summary.groups), strict=True)
    left = TERMINAL_CHARACTERS - 1 - sum(map(_width, ("n", *others), repeat(())))
    left -= sum(map(_width, summary.by, keys))
    shown: list[str] = []
    for name in summary.metrics:
        left -= _width(name, [with_interval(group.means[name]) for group in summary.groups])
        if left < 0 and shown:
            break
        shown.append(name)
    return tuple(shown)


def _width(name: str, texts: Sequence[str]) -> int:
    return AROUND_CHARACTERS + max(map(len, (name, *texts)))


def _record(summary: Summary, group: Group) -> list[object]:
    counts = [group.completed, *(getattr(group, name) for name in OTHER_ENDS)]
    means = [getattr(group.means[name], part) for name in summary.metrics for part in PARTS]
    return [*group.key, *counts, *map(nine_digits, (*group.completion, *means))]


def _document(summary: Summary, group: Group) -> Document:
    return {
        "axes": dict(zip(summary.by, group.key, strict=True)),
        "completed": group.completed,
        **{name: getattr(group, name) for name in OTHER_ENDS},
        "completion_ci95": list(group.completion),
        "metrics": {
            name: {part: getattr(group.means[name], part) for part in ("n", *PARTS)} for name in summary.metrics
        },
    }


def _notes(summary: Summary) -> list[str]:
    """What a reader must know beside the numbers, one sentence a line."""
    notes = ["mean ± 95 % Student-t interval over the completed cells; n counts them."]
    if any(group.means[name].has_range for group in summary.groups for name in summary.metrics):
        outside = "the interval would reach below 0 or above the link's rate"
        notes.append(
            f"mean (least to greatest) where fewer than {ENOUGH} cells completed or {outside}: these have no interval."
        )
    if summary.same:
        notes.append("n 1, nothing is drawn: all repeats are the same cell, which runs once.")
    if any(mean.is_partial and mean.n for group in summary.groups for mean in group.means.values()):
        notes.append(OF_PARTS)
    rows = summary.results.rows
    pooled = [name for name in summary.results.axes if name not in summary.by and len({row[name] for row in rows}) > 1]
    if pooled:
        notes.append("no interval, but the least and greatest value: cells of one repeat may have met the same errors.")
    notes += of_mixture(pooled)
    reasons: dict[str, int] = {}
    for row in rows:
        if not row.has_completed:
            label = f"{row.get('status')}: {row.get('reason') or 'no reason given'}"
            reasons[label] = reasons.get(label, 0) + 1
    notes += [f"{count} x {label}" for label, count in sorted(reasons.items(), key=lambda item: -item[1])[:5]]
    of = f"of {sum(row.has_completed for row in rows)} completed cells"
    notes += [f"{name} is empty in {count} {of}: {why}." for (name, why), count in _unmeasured(summary).most_common(5)]
    sources = {row.get("transfer_source", "") for row in rows}
    if "transfer_s" in summary.metrics and "record" in sources:
        notes.append(
            "transfer_s: some cells have no capture at the sink; theirs is from the receiving program's record."
        )
    return notes


def _unmeasured(summary: Summary) -> Counter[tuple[str, str]]:
    """In how many cells a metric is empty for a reason."""
    return Counter(
        (name, why)
        for row in summary.results.rows
        for names, _, why in (part.partition(": ") for part in row.get("unmeasured", "").split("; "))
        for name in names.split(", ")
        if name in summary.metrics
    )


def of_mixture(pooled: Sequence[str]) -> list[str]:
    """What a reader must know of axes whose values are taken together, if any."""
    together = f"taken together: all values of {', '.join(pooled)}."
    return [f"{together} The numbers are of the mixture, not of repeats under one condition."] if pooled else []


def with_interval(mean: Mean) -> str:
    """Mean ± half width, rounded to what the interval lets one say (two digits of it); or mean (least to greatest
    value); the mean alone where the values are as good as equal. It is marked if other cells ended without a value.
    """
    return NOTHING if mean.mean is None else _interval(mean) + (PARTIAL if mean.is_partial else "")


def _interval(mean: Mean) -> str:
    if mean.mean is None:
        return NOTHING
    spread = mean.sd if mean.ci95_half is None else mean.ci95_half
    if spread is None or spread <= AS_ONE * abs(mean.mean):
        return _significant(mean.mean)
    if (mean.has_range or mean.ci95_half is None) and mean.least is not None and mean.most is not None:
        digits = max(0, min(9, 1 - _exponent(mean.most - mean.least)))
        return f"{mean.mean:,.{digits}f} ({mean.least:,.{digits}f} to {mean.most:,.{digits}f})"
    if mean.ci95_half is None:
        # A deviation is no interval.
        return _significant(mean.mean)
    digits = max(0, min(9, 1 - _exponent(mean.ci95_half)))
    return f"{mean.mean:,.{digits}f} ± {mean.ci95_half:,.{digits}f}"


def _significant(value: float) -> str:
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.{max(0, min(9, 3 - _exponent(value)))}f}"


def _exponent(value: float) -> int:
    """Decimal exponent of a number: 2 for 450."""
    return int(f"{value:e}".partition("e")[2]) if value else 0


def _is_stale(run_dir: Path) -> bool:
    path = RunFolder(run_dir).results
    sources = [file for cell in RunFolder(run_dir).planned_cells() for file in (cell.plan, cell.status_file)]
    changed_ns = [file.stat().st_mtime_ns for file in sources if file.is_file()]
    return not path.is_file() or max(changed_ns, default=0) > path.stat().st_mtime_ns


def _require(results: Results, names: Sequence[str], known: Sequence[str], what: str) -> None:
    for name in names:
        if name not in known:
            of_several = ["_".join(place) for place in results.owned if place[1] == name]
            near = of_several or difflib.get_close_matches(name, known, n=3) or list(known)[:8]
            found = "a column that is no number" if results.rows and name in results.rows[0] else "no such column"
            raise UsageError(
                f'{results.run_dir}: {what} "{name}": found {found}; expected one such as {", ".join(near)}. '
                "Choose a column of results.csv."
            )
