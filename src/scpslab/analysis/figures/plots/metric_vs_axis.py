"""A metric against a swept axis, mean with bars (95 %, or the range of few values), one series per combination of the
other axes (FY97 Figs 4 to 18).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter
from pydantic import model_validator

from scpslab.analysis.figures import canvas
from scpslab.analysis.figures.model_curves import METRICS, OF_LOSSES, TITLES, Path, path_of, speaks_tcp
from scpslab.analysis.figures.model_curves import MODELS as MODEL_CURVES
from scpslab.analysis.figures.recipe import Mark, PaperSeries, Recipe, mark_sentences, marks_of, points, words
from scpslab.analysis.figures.source import NothingToDrawError, Source, axes_of, axis_number, fits
from scpslab.analysis.run import RunCell
from scpslab.analysis.statistics import ENOUGH, Group, ResultRow, group_rows
from scpslab.analysis.table import Results
from scpslab.core.choices import one_of
from scpslab.core.problems import UnfitError
from scpslab.core.units import KINDS, PERCENT, UnitError, parse
from scpslab.documents.parts import key
from scpslab.documents.quantities import OneOrMore

# Exponents without mathematical typesetting, which is off because labels come from files (canvas.py).
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
ZERO_DECADES = 0.8  # how far left of the smallest number 0 stands on a log axis, in decades
STEP_DECADES, STEP_SHARE = 0.018, 0.006  # how far two series stand apart: on a log axis, and as a share of a linear one
STEPS_IN_GAP = 20  # at least so many of these steps are between two points of a linear axis


class MetricVsAxis(Recipe):
    """A metric against an axis of the sweep; every panel shows the papers' values.

    Attributes:
        metric: A column of results.csv.
        axis: The axis of the sweep.
        series: The axes whose values make a series. Default: all others.
        panels: The axis that has one panel for each value.
        where: The cells to draw: axes, with a value or values for each.
        paper: The values that the paper states.
        models: Curves of formulas: the line rate's floor, and TCP over random losses by Mathis and PFTK.
    """

    takes_units: ClassVar[bool] = True
    plot: Literal["metric-vs-axis"]
    metric: str = key(example="transfer_s")
    axis: str = key(example="ber")
    series: tuple[str, ...] = key((), example=["stack"])
    panels: str | None = key(None, example="timestamps")
    where: dict[str, OneOrMore] = key({}, example={"level": 150})
    paper: tuple[PaperSeries, ...] = key(())

    models: tuple[Literal["floor", "mathis", "pftk"], ...] = key((), example=["floor", "mathis"])

    @model_validator(mode="after")
    def _can_be_drawn(self) -> Self:
        if self.conditions is None and any(paper.conditions is None for paper in self.paper):
            raise UnfitError("values of a paper without conditions", "conditions in the recipe or beside the values")
        try:
            self.y.divisor(self.metric)
        except UnitError as error:
            raise UnfitError(error.problem.found, error.problem.expected, subject="y.unit") from error
        return self

    def draw(self, source: Source) -> Figure:
        """The panels, each with its series, curves of models and the paper's marks.

        Raises:
            NothingToDrawError: the run has no such axis or metric, or no numbers for them.
        """
        rows = self._rows(source)
        results, varied = source.results, [name for name in source.results.axes if len({row[name] for row in rows}) > 1]
        panel_axes = [self.panels] if self.panels in results.axes else []
        others = [name for name in varied if name not in (self.axis, self.panels)]
        series_axes = [name for name in self.series if name in results.axes] if self.series else others
        groups = group_rows(rows, (*panel_axes, *series_axes, self.axis), (self.metric,))
        position = _Positions(self._axis_numbers(source, groups), is_log=self.x.scale == "log")
        panels: dict[str, list[Group]] = {}
        for group in _by_number(groups) if panel_axes else groups:
            name = self.panel_name(group.key[0]) if panel_axes else ""
            panels.setdefault(name, []).append(replace(group, key=group.key[len(panel_axes) :]))
        keys = list(dict.fromkeys(group.key[:-1] for own in panels.values() for group in own))
        cells = [cell for cell in source.run.cells if fits(axes_of(cell), self.where, skips_unknown=True)]
        in_panel = {
            name: [cell for cell in cells if not name or self.panel_name(axes_of(cell)[panel_axes[0]]) == name]
            for name in panels
        }
        marks = {name: marks_of(self, points(own)) for name, own in in_panel.items()}
        pooled = [name for name in others if name not in series_axes]
        around = words(self, cells, _caption(self, source.run_dir.name, groups, pooled))
        sentences = mark_sentences(self, list(marks.values()), around.caption)
        around = replace(around, caption=" ".join([around.caption, *sentences]))
        with canvas.new_panels(around, list(panels)) as (figure, drawn):
            for (name, own), axes in zip(panels.items(), drawn, strict=True):
                _draw_series(axes, self, keys, own, position)
                if self.models:
                    _draw_models(axes, self, source, in_panel[name], position)
                for index, mark in enumerate(marks[name]):
                    _draw_paper(axes, mark, position, canvas.PAPER_MARKERS[index % len(canvas.PAPER_MARKERS)])
            # The panels share their axes: set the limits when all of them have their content.
            for axes in drawn:
                _finish(axes, self, position)
        return figure

    def number(self, text: str) -> float | None:
        """An axis value in the unit of the x axis."""
        number = axis_number(text)
        return number if number is None else number / self.x.divisor()

    def panel_name(self, value: str) -> str:
        """The name of the panel of a value."""
        return f"{self.panels} {value}".replace("_", " ")

    def error(self, source: Source, problem: str) -> NothingToDrawError:
        """Why the figure cannot be drawn."""
        return NothingToDrawError(f"{source.run_dir}: figure {self.name}: {problem}")

    def _rows(self, source: Source) -> list[ResultRow]:
        """The rows that the recipe chooses."""
        results = source.results
        for name, known in ((self.axis, results.axes), (self.metric, results.names)):
            if name not in known:
                problem = f'found no column "{name}"; expected one of {", ".join(known)}. Correct the recipe.'
                raise self.error(source, problem)
        # Cells may also be chosen by what is the same in all of a run, such as their stack.
        for word, names, known in (
            ("series", self.series, results.axes),
            ("panels", (self.panels,) if self.panels else (), results.axes),
            ("where", self.where, results.columns),
        ):
            unknown = [name for name in names if name not in known]
            # A recipe of the project is for several scenarios, of which some lack an axis.
            if unknown and self.is_own:
                problem = f'{word}: found "{unknown[0]}"; {one_of(unknown[0], results.axes)}'
                raise NothingToDrawError(f"{source.run_dir}: {problem}")
        rows = [row for row in results.rows if fits(row, self.where, skips_unknown=True)]
        if not rows:
            raise self.error(source, self._no_cell(results))
        return rows

    def _no_cell(self, results: Results) -> str:
        """The cells that the recipe asks for; for a value that no cell has, the values that there are."""
        asked = {name: f"{name} {' or '.join(map(str, wanted))}" for name, wanted in self.where.items()}
        for name, wanted in self.where.items():
            if not any(fits(row, {name: wanted}, skips_unknown=True) for row in results.rows):
                values = dict.fromkeys(row[name] for row in results.rows)
                return f"found no cell with {asked[name]}; {one_of(wanted[0], values)}"
        return (
            f"found no cell with {', '.join(asked.values())} together; expected at least one. "
            "Correct `where` in the recipe, or draw another run."
        )

    def _axis_numbers(self, source: Source, groups: Sequence[Group]) -> list[float]:
        """The numbers of the axis, each once."""
        unit, numbers = self.x.unit, []
        for text in dict.fromkeys(group.key[-1] for group in groups):
            number = self.number(text)
            if number is None:
                problem = f'found "{text}"; expected numbers. Choose another axis in the recipe.'
                raise self.error(source, f"axis {self.axis}: {problem}")
            if unit is not None and not _counts_in(unit, text):
                kinds = (units for units in KINDS.values() if any(_counts_in(other, text) for other in units))
                fitting = [name for units in kinds for name in units]
                problem = f'found "{text}", and x.unit {unit} in the recipe; {one_of(unit, fitting)}'
                raise self.error(source, f"axis {self.axis}: {problem}")
            numbers.append(number)
        return numbers


def _counts_in(unit: str, text: str) -> bool:
    """Whether an axis value is of the kind that a unit counts. Percent are of plain numbers."""
    with suppress(ValueError):
        if unit == PERCENT:
            return float(text) >= 0
        return any(parse(kind, text) >= 0 for kind, units in KINDS.items() if unit in units)
    return False


def _by_number(groups: list[Group]) -> list[Group]:
    """Groups by the first value of their keys, where all of these are numbers: 10 kB before 1 MB."""
    numbered = [(number, group) for group in groups if (number := axis_number(group.key[0])) is not None]
    return [group for _, group in sorted(numbered, key=lambda one: one[0])] if len(numbered) == len(groups) else groups


def _draw_models(
    axes: Axes, recipe: MetricVsAxis, source: Source, cells: Sequence[RunCell], position: _Positions
) -> None:
    """A curve for each model through the points of the axis, from the paths that the cells' plans state."""
    if recipe.metric not in METRICS:
        problem = f'found models for "{recipe.metric}"; expected {", ".join(METRICS)}. Leave out the models.'
        raise recipe.error(source, problem)
    paths: dict[float, Path] = {}
    # The formulas are of TCP: beside it, programs and SCPS-TP have other segments.
    for cell in [one for one in cells if speaks_tcp(one)] or cells:
        value = axes_of(cell)[recipe.axis]
        number, path = recipe.number(value), path_of(cell)
        if number is not None and paths.setdefault(number, path) != path:
            raise recipe.error(
                source,
                f"models: found cells with several paths at {recipe.axis} {value}; expected one path. "
                "Choose cells with where, or use panels.",
            )
    numbers, by = sorted(paths), recipe.y.divisor(recipe.metric)
    for index, model in enumerate(recipe.models):
        # Without losses the formulas of losses say nothing, and a line from there would lead through values that they
        # do not have.
        is_of_losses = model in OF_LOSSES and any(path.loss for path in paths.values())
        values = [
            math.nan
            if is_of_losses and not paths[number].loss
            else METRICS[recipe.metric](MODEL_CURVES[model](paths[number]), paths[number]) / by
            for number in numbers
        ]
        axes.plot(
            [position(number) for number in numbers],
            values,
            color=canvas.MUTED,
            linestyle=canvas.line_style(index + 1),
            linewidth=1.1,
            label=canvas.MODEL_PREFIX + TITLES[model],
        )


class _Positions:
    """The place of a number on the x axis: the number itself, but 0 on a log axis is left of a break.

    Series are drawn side by side.
    """

    def __init__(self, numbers: Sequence[float], *, is_log: bool) -> None:
        above_zero = sorted({number for number in numbers if number > 0})
        self.is_log = is_log and bool(above_zero)
        self.has_zero = self.is_log and any(number <= 0 for number in numbers)
        self.smallest = above_zero[0] if above_zero else 1.0
        self.largest = above_zero[-1] if above_zero else 1.0
        self.zero = 10 ** (math.floor(math.log10(self.smallest) + 1e-9) - ZERO_DECADES)
        each = sorted(set(numbers))
        range_ = each[-1] - each[0] if each else 1.0
        # Neighbouring points keep their order on a linear axis, however near they are.
        gap = min((right - left for left, right in itertools.pairwise(each)), default=range_)
        self._step = min(STEP_SHARE * range_, gap / STEPS_IN_GAP)
        self._least = 0.0 if each and each[0] >= 0 else -math.inf

    def __call__(self, number: float, place: float = 0.0) -> float:
        """`place` is the distance from the number in steps, so that error bars of several series do not hide each
        other.
        """
        if self.is_log:
            return (self.zero if number <= 0 else number) * 10 ** (place * STEP_DECADES)
        # No series stands at a negative error rate, delay or load.
        return max(self._least, number + place * self._step)


def _draw_series(
    axes: Axes, recipe: MetricVsAxis, keys: Sequence[tuple[str, ...]], groups: Sequence[Group], position: _Positions
) -> None:
    first = list(dict.fromkeys(key[:1] for key in keys))
    rest = list(dict.fromkeys(key[1:] for key in keys))
    by = recipe.y.divisor(recipe.metric)
    for index, group_key in enumerate(keys):
        look = _look(first.index(group_key[:1]), rest.index(group_key[1:]), len(rest))
        members = [(recipe.number(group.key[-1]) or 0.0, group) for group in groups if group.key[:-1] == group_key]
        drawn = [
            (position(number, index - (len(keys) - 1) / 2), mean.mean, mean.shown or (mean.mean, mean.mean), group)
            for number, group in sorted(members, key=lambda member: member[0])
            if (mean := group.means[recipe.metric]).mean is not None
        ]
        # A series without a completed cell keeps its place in the legend.
        axes.errorbar(
            [x for x, *_ in drawn],
            [middle / by for _, middle, *_ in drawn],
            yerr=[[abs(middle / by - ends[side] / by) for _, middle, ends, _ in drawn] for side in (0, 1)],
            label=", ".join(group_key) or recipe.metric,
            **look,
        )
        for x, middle, _, group in drawn:
            if group.completed < _ended(group):
                # At the right edge there is room to the left only.
                aside, side = (-6, "right") if position.is_log and x > position.largest / 2 else (6, "left")
                axes.annotate(
                    f"{group.completed}/{_ended(group)} done",
                    (x, middle / by),
                    xytext=(aside, 6),
                    textcoords="offset points",
                    fontsize=7.5,
                    color=look["color"],
                    ha=side,
                )


def _look(first: int, rest: int, others: int) -> dict[str, Any]:
    """How a series is drawn: the first axis chooses colour and marker, the `others` of the rest the line style and
    whether markers are filled; and so does the first one where it has more values than there are colours.
    """
    colour, style = canvas.colour(first), rest + first // len(canvas.COLOURS) * others
    filled = colour if style % 2 == 0 else "white"
    return {
        "color": colour,
        "marker": canvas.marker(first),
        "markerfacecolor": filled,
        "linestyle": canvas.line_style(style),
    }


def _ended(group: Group) -> int:
    return group.completed + group.incomplete + group.failed


def _caption(recipe: MetricVsAxis, run: str, groups: Sequence[Group], pooled: Sequence[str]) -> str:
    """The run, what bars and marks are, and the points that have no mean because no transfer completed."""
    sizes = sorted({group.completed for group in groups if group.completed})
    n = "–".join(str(size) for size in dict.fromkeys((sizes[0], sizes[-1]))) if sizes else "0"
    means = [group.means[recipe.metric] for group in groups]
    bars = "95 % Student-t intervals" if any(mean.shown and not mean.has_range for mean in means) else ""
    if any(mean.has_range for mean in means):
        few = "bars from the least to the greatest value"
        where = f"(where n is below {ENOUGH}, or the interval would reach below 0 or above the link's rate)"
        bars = f"{bars} or {few} {where}" if bars else few
    around = f"Means and {bars}" if bars else "Means"
    sentences = [f"Run {run}. {around}, n = {n} per point; incomplete transfers are counted, not averaged."]
    if len({group.key[:-1] for group in groups}) > 1:
        sentences.append("Series are drawn side by side, so that their bars can be seen.")
    if pooled:
        sentences.append(f"Taken together: all values of {', '.join(pooled)}.")
    empty = [
        f"{', '.join(group.key[:-1])} at {group.key[-1]} (0/{_ended(group)})".strip()
        for group in groups
        if not group.completed
    ]
    if empty:
        sentences.append(f"None completed: {'; '.join(empty)}.")
    if recipe.models:
        sentences.append(
            "Grey lines are models of the path and not measurements: losses by bit errors alone, no slow start, no "
            "window's limit, never faster than the line."
        )
    return " ".join(sentences)


def _draw_paper(axes: Axes, mark: Mark, position: _Positions, sign: str) -> None:
    if not mark.points:
        return
    axes.plot(
        [position(x) for x, _ in mark.points],
        [y for _, y in mark.points],
        linestyle="none",
        marker="v" if mark.paper.is_upper_bound else sign,
        markersize=9,
        markerfacecolor="none",
        markeredgecolor=canvas.PAPER_COLOUR,
        markeredgewidth=1.3,
        label=canvas.PAPER_PREFIX + mark.paper.label,
        zorder=5,
    )


def _finish(axes: Axes, recipe: MetricVsAxis, position: _Positions) -> None:
    axes.set_xlabel(recipe.x.label)
    axes.set_ylabel(recipe.y.label)
    axes.set_yscale(recipe.y.scale)
    if recipe.y.scale == "log":
        # 20, 50, 100 rather than powers of ten, because people read seconds off the axis.
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    if position.is_log:
        axes.set_xscale("log")
        _mark_decades(axes, position)
    if recipe.y.scale == "linear":
        axes.set_ylim(bottom=0)
    axes.set_xlim(recipe.x.min, recipe.x.max)
    axes.set_ylim(recipe.y.min, recipe.y.max)


def _mark_decades(axes: Axes, position: _Positions) -> None:
    """Ticks at whole decades, and 0 left of a break in the axis."""
    low, high = math.floor(math.log10(position.smallest) + 1e-9), math.ceil(math.log10(position.largest) - 1e-9)
    decades = [10.0**exponent for exponent in range(low, high + 1)]
    ticks = ([position.zero] if position.has_zero else []) + decades
    labels = (["0"] if position.has_zero else []) + [
        f"10{str(exponent).translate(RAISED)}" for exponent in range(low, high + 1)
    ]
    axes.set_xticks(ticks, labels)
    axes.xaxis.set_minor_locator(FixedLocator([digit * decade for decade in decades[:-1] for digit in range(2, 10)]))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlim((position.zero if position.has_zero else decades[0]) / 1.6, position.largest * 1.6)
    if position.has_zero:
        at = math.sqrt(position.zero * decades[0])
        for foot, head in ((-0.6, -0.1), (0.1, 0.6)):
            axes.plot(
                [at],
                [0],
                transform=axes.get_xaxis_transform(),
                marker=[(foot, -1), (head, 1)],
                color="black",
                markersize=9,
                clip_on=False,
                linestyle="none",
            )
