"""Figure recipes: data from analysis/figures/*.yaml that say what to draw, from which runs, with which marks from the
papers.

A recipe may extend one base (a file whose name starts with "_", which is never drawn by itself); a base extends
nothing. Keys of the recipe win over keys of the base; `x`, `y` and `conditions` are merged key by key, every other key
is replaced whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import PrivateAttr, model_validator

from scpslab.analysis.figures.conditions import Conditions
from scpslab.core.problems import UnfitError
from scpslab.core.project import ROOT
from scpslab.core.units import KINDS, PERCENT, UnitError, of_metric
from scpslab.documents import Form, Part, key
from scpslab.documents.parts import OneOf, Version, one_line
from scpslab.documents.quantities import PAIR, AxisValue

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from scpslab.analysis.figures.source import Source
    from scpslab.analysis.run import RunCell

RECIPES = ROOT / "analysis" / "figures"
FORM = Form("a figure recipe", "kind, plot, title, x, y", "docs/figures.md")
LONGEST_LINE = 300
# No rate, size or time in a laboratory is so far from 0, and pictures of larger numbers fail.
FARTHEST = 1e18
Line = Annotated[str, one_line(0, LONGEST_LINE)]
CellChoice = dict[str, AxisValue]
FACTORS: dict[str, float] = {unit: factor for units in KINDS.values() for unit, factor in units.items()}


class AxisStyle(Part):
    """One axis of a picture."""

    label: Line = key(says="Label with its unit.", example="Transfer time at the sink (s)")
    unit: Annotated[str, OneOf((*FACTORS, PERCENT))] | None = key(
        None, says="Unit in which the axis counts. Default: base units.", example="kbit/s"
    )
    scale: Literal["linear", "log"] = key("linear", says="Linear or logarithmic.", example="log")
    min: float | None = key(None, says="Lower limit. Default: from the values.", example=0)
    max: float | None = key(None, says="Upper limit. Default: from the values.", example=105)

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
    """Values that a paper states, drawn as marks where the run has a cell under their conditions."""

    label: Line = key(says="Name in the legend.", example="TCP")
    source: Line = key(says="The place of each value in the paper, or its derivation.", example="3.1.5.1, Fig 4")
    points: tuple[Annotated[tuple[float, float], PAIR], ...] = key(
        says="Pairs of x and y.", example=[[0, 74], [1e-6, 39]]
    )
    conditions: Conditions | None = key(
        None, says="The conditions of these values, on top of the recipe's.", example={"hosts": {"preset": "fy97-reno"}}
    )
    is_upper_bound: bool = key(False, says="Whether the paper says only that the values lie below these.")


class Recipe(Part):
    """The keys of every recipe.

    The name of the file is the name of the recipe. `takes_units`: whether pictures of the kind obey `unit`.
    """

    takes_units: ClassVar[bool] = False
    kind: Literal["figure"]
    version: Version
    plot: str = key(says="Kind of picture.", example="metric-vs-axis")
    title: Line = key(
        says="One line above the picture, without conditions: the line below it says them, from the plans.",
        example="Goodput against delay",
    )
    source: Line = key("", says="The figure of a paper that this one re-draws.", example="MITRE FY97 report, Fig 4")
    conditions: Conditions | None = key(
        None,
        says="The conditions of that figure. The caption says where the run has others.",
        example={"size": "4000000 B"},
    )
    applies_to: tuple[str, ...] = key(
        (),
        says="Names of the scenarios for whose runs it is drawn by default; * stands for anything.",
        example=["*fig04*"],
    )
    stands_in: bool = key(False, says="Whether it is drawn by default only where no other recipe applies.")
    x: AxisStyle = key(says="The horizontal axis.")
    y: AxisStyle = key(says="The vertical axis.")
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

    def with_models(self, models: Sequence[str]) -> Recipe:
        """The recipe with curves of these formulas added, if its kind has curves."""
        return self

    def applies(self, scenario: str) -> bool:
        """Whether `scpslab plot` draws this figure for runs of the scenario by default.

        One beside a scenario needs no `applies_to` for that.
        """
        return (self._is_own and not self.applies_to) or any(
            fnmatchcase(scenario, pattern) for pattern in self.applies_to
        )


class CellRecipe(Recipe):
    """A recipe that draws single cells."""

    cells: tuple[CellChoice, ...] = key(
        (),
        says="The cells to draw, by axis values; of each choice the first completed cell that fits.",
        example=[{"ber": 1e-6}],
    )

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
