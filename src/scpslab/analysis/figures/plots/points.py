"""One metric of every cell: a row for each point of the sweep, a dot for each repeat, and how many completed.

It needs no probe.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scpslab.analysis.figures.canvas import COLOURS, MUTED, new_stack
from scpslab.analysis.figures.recipe import AxisStyle, Recipe, words
from scpslab.analysis.figures.source import NothingToDrawError, Source
from scpslab.analysis.statistics import Group, ResultRow, group_rows
from scpslab.documents.parts import key

ROW_SHARE = 0.22  # height of a row, as a share of a panel
MOST_ROWS = 40  # more would make a picture that no screen shows
LONGEST_LABEL = 70
ROOM = 1.05  # the axis ends this much beyond the largest value, and the least one below 0
UNITS = {"_s": "s", "_bps": "bit/s", "_pct": "%", "_ms": "ms", "_bytes": "bytes", "_packets": "packets"}


class Points(Recipe):
    """Dots are single cells, the bar is their mean. Points of the sweep without a value keep their row.

    Attributes:
        metric: A column of results.csv. Default: the first telling one that the run has.
        x: Not used: the metric has its own unit.
        y: Not used: rows are points of the sweep.
    """

    plot: Literal["points"]
    metric: str | None = key(None, example="goodput_bps")
    x: AxisStyle = key(AxisStyle(label="(the metric)"))
    y: AxisStyle = key(AxisStyle(label="(points of the sweep)"))

    def draw(self, source: Source) -> Figure:
        """A row for each point of the sweep.

        Raises:
            NothingToDrawError: the run has no such metric, or no cell has a value of one.
        """
        results = source.results
        metric = self._metric(source)
        varied = tuple(name for name in results.axes if len({row[name] for row in results.rows}) > 1)
        groups = group_rows(results.rows, varied, (metric,))
        drawn = groups[:MOST_ROWS]
        values = _values(results.rows, varied, metric)
        around = words(self, source.run.cells, _caption(source.run_dir.name, groups, varied))
        height = max(0.6, ROW_SHARE * (len(drawn) + 0.6))
        with new_stack(replace(around, title=f"{around.title}: {metric}"), [height]) as (figure, (axes,)):
            for row, group in enumerate(drawn):
                _draw_row(axes, row, group, values.get(group.key, []), metric)
            axes.set_ylim(len(drawn) - 0.2, -0.95)
            axes.set_yticks([])
            axes.grid(visible=False, axis="y")
            axes.spines["left"].set_visible(False)
            axes.set_xlim(ROOM * min(axes.dataLim.x0, 0), ROOM * max(axes.dataLim.x1, 1e-9))
            unit = next((unit for suffix, unit in UNITS.items() if metric.endswith(suffix)), "number")
            axes.set_xlabel(f"{metric} ({unit})")
        return figure

    def _metric(self, source: Source) -> str:
        """The metric to draw: the first that some cell has a value of."""
        results = source.results
        for name in (self.metric,) if self.metric else (*results.telling, *results.metrics):
            if name in results.names and any(name in row.numbers for row in results.rows):
                return name
        known = ", ".join(results.metrics) or "a workload with metrics"
        found = f"found no value of {self.metric or 'any metric'}"
        expected = f"expected one of {known}."
        raise NothingToDrawError(f"{source.run_dir}: figure {self.name}: {found}; {expected}")


def _values(rows: Sequence[ResultRow], varied: Sequence[str], metric: str) -> dict[tuple[str, ...], list[float]]:
    values: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        if row.has_completed and metric in row.numbers:
            values.setdefault(tuple(row[name] for name in varied), []).append(row.numbers[metric])
    return values


def _draw_row(axes: Axes, row: int, group: Group, values: Sequence[float], metric: str) -> None:
    label = ", ".join(group.key) or "all cells"
    tried = group.completed + group.incomplete + group.failed + group.unsupported
    if group.completed < tried:
        label += f"  ({group.completed} of {tried} completed)"
    # Labels stand in the panel, above the dots: they are as long as they are, and a phone is narrow.
    axes.text(0.005, row - 0.32, label[:LONGEST_LABEL], transform=axes.get_yaxis_transform(), va="center", fontsize=9)
    axes.axhline(row + 0.12, color="#EEEEEE", linewidth=0.7, zorder=0)
    axes.plot(values, [row + 0.12] * len(values), "o", markersize=5, markerfacecolor="none", color=COLOURS[0])
    mean = group.means[metric].mean
    if mean is not None and len(values) > 1:
        axes.plot([mean], [row + 0.12], linestyle="none", marker="|", markersize=12, markeredgewidth=2, color=MUTED)


def _caption(run: str, groups: Sequence[Group], varied: Sequence[str]) -> str:
    sentences = [
        f"Run {run}. Circles are single cells, bars their means; incomplete transfers are counted, not averaged."
    ]
    if varied:
        sentences.append(f"Rows: {', '.join(varied)}.")
    if len(groups) > MOST_ROWS:
        sentences.append(
            f"{len(groups) - MOST_ROWS} other points of the sweep are not drawn: scpslab results lists all."
        )
    return " ".join(sentences)
