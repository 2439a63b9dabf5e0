"""All values of a metric in order: how far they spread."""

from __future__ import annotations

from typing import Literal

from matplotlib.figure import Figure

from scpslab.analysis.figures.canvas import colour, new_panels
from scpslab.analysis.figures.recipe import Recipe, words
from scpslab.analysis.figures.source import Source, shown
from scpslab.documents.parts import key


class Spread(Recipe):
    """A made-up kind of picture."""

    plot: Literal["spread"]
    metric: str = key(says="A column of results.csv.", example="transfer_s")

    def draw(self, source: Source) -> Figure:
        """A circle for each value, the smallest first."""
        numbers = [row.numbers.get(self.metric) for row in source.results.rows]
        with new_panels(words(self, source.run.cells, f"{shown(source, source.run.cells)}.")) as (figure, (axes,)):
            axes.plot(sorted(filter(None, numbers)), color=colour(0), marker="o")
            axes.set_ylabel(self.y.label)
        return figure
