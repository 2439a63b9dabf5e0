"""Figure recipes: data from analysis/figures/*.yaml that say what to draw, from which runs, with which marks from the
papers.

A recipe may extend one base (a file whose name starts with "_", which is never drawn by itself); a base extends
nothing. Keys of the recipe win over keys of the base; `x`, `y` and `conditions` are merged key by key, every other key
is replaced whole.

At the end are the words around a picture, from its recipe and the plans of the cells in it; and a paper's marks, which
are drawn where the run has a cell under their conditions, and else named in the caption with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import PrivateAttr, model_validator

from scpslab.analysis.figures.conditions import Conditions, Mismatch, differences, facts_of, said
from scpslab.analysis.figures.source import Source, axis_number
from scpslab.analysis.run import RunCell
from scpslab.core.problems import UnfitError
from scpslab.core.project import ROOT
from scpslab.core.units import KINDS, PERCENT, UnitError, of_metric
from scpslab.documents.parts import OneOf, Part, Version, key, one_line
from scpslab.documents.quantities import PAIR, AxisValue
from scpslab.documents.yaml_lines import Form
from scpslab.plan import Plan

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RECIPES = ROOT / "analysis" / "figures"
FORM = Form("a figure recipe", "kind, plot, title, x, y", "docs/figures.md")
LONGEST_LINE = 300
# No rate, size or time in a laboratory is so far from 0, and pictures of larger numbers fail.
FARTHEST = 1e18
Line = Annotated[str, one_line(0, LONGEST_LINE)]
CellChoice = dict[str, AxisValue]
FACTORS: dict[str, float] = {unit: factor for units in KINDS.values() for unit, factor in units.items()}


class AxisStyle(Part):
    """One axis of a picture.

    Attributes:
        label: Label with its unit.
        unit: Unit in which the axis counts. Default: base units.
        scale: Linear or logarithmic.
        min: Lower limit. Default: from the values.
        max: Upper limit. Default: from the values.
    """

    label: Line = key(example="Transfer time at the sink (s)")
    unit: Annotated[str, OneOf((*FACTORS, PERCENT))] | None = key(None, example="kbit/s")
    scale: Literal["linear", "log"] = key("linear", example="log")
    min: float | None = key(None, example=0)
    max: float | None = key(None, example=105)

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        far = [limit for limit in (self.min, self.max) if limit is not None and abs(limit) > FARTHEST]
        if far:
            raise UnfitError(f"the limit {far[0]:g}", f"one between {-FARTHEST:g} and {FARTHEST:g}")
        if self.scale == "log" and self.min is not None and self.min <= 0:
            raise UnfitError(f"min {self.min:g} on a logarithmic axis", "a limit above 0")
        if self.max is not None and self.max <= (self.min or 0):
            # Without a lower limit, axes begin at 0.
            raise UnfitError(
                f"max {self.max:g}, not above {'0' if self.min is None else f'min {self.min:g}'}", "a larger one"
            )
        return self

    def divisor(self, metric: str | None = None) -> float:
        """What numbers are divided by: those of a metric, or of a swept quantity in base units.

        Raises:
            UnitError: the metric counts something else.
        """
        if self.unit is None:
            return 1.0
        counted = None if metric is None else of_metric(metric)
        if self.unit == PERCENT and counted is None:
            return 0.01
        if metric is None and self.unit != PERCENT:
            return FACTORS[self.unit]
        if counted is None or self.unit not in KINDS[counted[0]]:
            expected = f"one of {', '.join(KINDS[counted[0]])}" if counted else f'"{PERCENT}", or none'
            raise UnitError(f'"{self.unit}" for {metric}', expected)
        return FACTORS[self.unit] / counted[1]


class PaperSeries(Part):
    """Values that a paper states, drawn as marks where the run has a cell under their conditions.

    Attributes:
        label: Name in the legend.
        source: The place of each value in the paper, or its derivation.
        points: Pairs of x and y.
        conditions: The conditions of these values, on top of the recipe's.
        is_upper_bound: Whether the paper says only that the values lie below these.
    """

    label: Line = key(example="TCP")
    source: Line = key(example="3.1.5.1, Fig 4")
    points: tuple[Annotated[tuple[float, float], PAIR], ...] = key(example=[[0, 74], [1e-6, 39]])
    conditions: Conditions | None = key(None, example={"hosts": {"preset": "fy97-reno"}})
    is_upper_bound: bool = key(False)


class Recipe(Part):
    """The keys of every recipe.

    The name of the file is the name of the recipe. `takes_units`: whether pictures of the kind obey `unit`.

    Attributes:
        plot: Kind of picture.
        title: One line above the picture, without conditions: the line below it says them, from the plans.
        source: The figure of a paper that this one re-draws.
        conditions: The conditions of that figure. The caption says where the run has others.
        applies_to: Names of the scenarios for whose runs it is drawn by default; * stands for anything.
        stands_in: Whether it is drawn by default only where no other recipe applies.
        x: The horizontal axis.
        y: The vertical axis.
    """

    takes_units: ClassVar[bool] = False
    kind: Literal["figure"]
    version: Version
    plot: str = key(example="metric-vs-axis")
    title: Line = key(example="Goodput against delay")
    source: Line = key("", example="MITRE FY97 report, Fig 4")
    conditions: Conditions | None = key(None, example={"size": "4000000 B"})
    applies_to: tuple[str, ...] = key((), example=["*fig04*"])
    stands_in: bool = key(False)
    x: AxisStyle
    y: AxisStyle
    _file: Path = PrivateAttr(Path())
    _is_own: bool = PrivateAttr(default=False)

    def model_post_init(self, beside: tuple[Path, bool] | None) -> None:
        """Takes its file, and whether that is the user's own. As keys of it they would be a second name."""
        if beside:
            self._file, self._is_own = beside

    @property
    def name(self) -> str:
        """The name of the recipe: its file's name."""
        return self._file.stem

    @property
    def file(self) -> Path:
        """Its file."""
        return self._file

    @property
    def is_own(self) -> bool:
        """Whether it is the user's own, beside a scenario."""
        return self._is_own

    def draw(self, source: Source) -> Figure:
        """The picture.

        Raises:
            UsageError: no such cell.
            NothingToDrawError: the run lacks what is drawn.
        """
        raise NotImplementedError

    def stem(self, source: Source) -> str:
        """The name of the picture's files."""
        return self.name

    def applies(self, scenario: str) -> bool:
        """Whether `scpslab plot` draws this figure for runs of the scenario by default.

        One beside a scenario needs no `applies_to` for that.
        """
        return (self._is_own and not self.applies_to) or any(
            fnmatchcase(scenario, pattern) for pattern in self.applies_to
        )


class CellRecipe(Recipe):
    """A recipe that draws single cells.

    Attributes:
        cells: The cells to draw, by axis values; of each choice the first completed cell that fits.
    """

    cells: tuple[CellChoice, ...] = key((), example=[{"ber": 1e-6}])

    def chosen(self, source: Source) -> list[RunCell]:
        """The cells to draw.

        Raises:
            UsageError: no such cell.
            NothingToDrawError: no completed cell fits.
        """
        return source.cells(self.cells)

    def stem(self, source: Source) -> str:
        """The name of the recipe, with those of the cells where the user chose them."""
        cells = self.chosen(source) if source.wanted_cells else []
        return "-".join([self.name, *(cell.folder.name for cell in cells)])


def recipe_files(folder: Path) -> list[Path]:
    """The files of a folder that are recipes, bases left out, in the order of their names."""
    return sorted(path for path in folder.glob("*.yaml") if not path.name.startswith("_") and path.is_file())


@dataclass(frozen=True)
class Words:
    """The texts around a picture: its title, the conditions of the cells in it, and the caption."""

    title: str
    conditions: str
    caption: str


def words(recipe: Recipe, cells: Sequence[RunCell], caption: str) -> Words:
    """Title, what the cells have in common, and the caption with the figure of the paper that the recipe re-draws."""
    plans = points(cells)
    whole = " ".join(filter(None, (caption, origin(recipe, plans))))
    return Words(recipe.title, said([facts_of(plan) for plan in plans]), whole)


def points(cells: Sequence[RunCell]) -> list[Plan]:
    """A plan for each point of the sweep: repeats differ in nothing that is said."""
    return list({tuple(cell.plan.cell.axes.items()): cell.plan for cell in reversed(cells)}.values())[::-1]


def listed(found: Sequence[Mismatch]) -> str:
    """Differences in words."""
    return ", ".join(dict.fromkeys(map(str, found)))


def at_point(conditions: Conditions, recipe: Recipe, plan: Plan) -> Conditions:
    """The conditions at the place of a cell on the axis of a figure."""
    axis = getattr(recipe, "axis", None)
    number = axis_number(str(plan.cell.axes.get(axis, ""))) if axis else None
    return conditions if number is None else conditions.at(str(axis), number)


def origin(recipe: Recipe, plans: Sequence[Plan]) -> str:
    """Which figure of a paper the recipe re-draws, and whether the cells have its conditions."""
    if not recipe.source:
        return ""
    if recipe.conditions is None or not plans:
        return f"Drawn like {recipe.source}."
    each = [differences(at_point(recipe.conditions, recipe, plan), plan) for plan in plans]
    if not any(each):
        return f"As {recipe.source}."
    nearest = min(each, key=len)
    if not nearest:
        others = next(item for item in each if item)
        return f"As {recipe.source}, but some cells have other conditions: {listed(others)}."
    return f"Drawn like {recipe.source}, under other conditions: {listed(nearest)}."


@dataclass(frozen=True)
class Mark:
    """A paper's series: the points that are drawn, and for the others the reason."""

    paper: PaperSeries
    points: tuple[tuple[float, float], ...]
    left_out: tuple[str, ...]


def marks_of(recipe: Recipe, plans: Sequence[Plan]) -> list[Mark]:
    """The marks of a recipe beside the cells of a panel."""
    return [_mark(paper, recipe, plans) for paper in getattr(recipe, "paper", ())]


def mark_sentences(recipe: Recipe, panels: Sequence[Sequence[Mark]], before: str) -> list[str]:
    """What the marks of all panels are, and which are left out and why; conditions that the text `before` names are not
    named again.
    """
    every = [mark for marks in panels for mark in marks]
    drawn = list(dict.fromkeys(f"{mark.paper.label}: {mark.paper.source}" for mark in every if mark.points))
    reasons: dict[str, list[str]] = {}
    for mark in every:
        for reason in mark.left_out:
            reasons.setdefault(reason, []).append(mark.paper.label)
    if not drawn and any(reason in before for reason in reasons):
        return ["The stated values are left out, because they are for those other conditions."]
    sentences = [f"Grey marks are stated values, {'; '.join(drawn)}."] if drawn else []
    labels = {paper.label for paper in getattr(recipe, "paper", ())}
    for reason, names in reasons.items():
        whose = "all" if set(names) == labels else ", ".join(dict.fromkeys(names))
        sentences.append(f"Stated values left out ({whose}): {reason}.")
    return sentences


def _mark(paper: PaperSeries, recipe: Recipe, plans: Sequence[Plan]) -> Mark:
    base = recipe.conditions or Conditions()
    conditions = paper.conditions.over(base) if paper.conditions else base
    drawn, reasons = [], []
    for x, y in paper.points:
        there = [plan for plan in plans if _is_at(recipe, plan, x)]
        mismatches = [differences(at_point(conditions, recipe, plan), plan) for plan in there]
        if any(not item for item in mismatches):
            drawn.append((x, y))
        else:
            reasons.append(listed(_nearest(mismatches)) if mismatches else f"no cell at {x:g}")
    return Mark(paper, tuple(drawn), tuple(dict.fromkeys(reasons)))


def _nearest(found: Sequence[tuple[Mismatch, ...]]) -> tuple[Mismatch, ...]:
    """The differences of the cell that comes nearest. A cell with the right hosts is nearer than one with others."""
    return min(found, key=lambda item: (any(difference.name == "hosts" for difference in item), len(item)))


def _is_at(recipe: Recipe, plan: Plan, x: float) -> bool:
    number = axis_number(str(plan.cell.axes.get(getattr(recipe, "axis", ""), "")))
    return number is not None and math.isclose(number / recipe.x.divisor(), x, rel_tol=1e-9)
