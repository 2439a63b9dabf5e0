"""Sequence numbers of single cells over time (apparatus M-05; FY97 Figs A-1, A-2)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scpslab.analysis.figures.canvas import COLOURS, LINE_STYLES, colour, line_style, marker, new_figure
from scpslab.analysis.figures.recipe import CellRecipe, Recipe
from scpslab.analysis.figures.source import Source, flow_at, label_of, shown
from scpslab.analysis.figures.words import words
from scpslab.documents import key
from scpslab.measure.connections import Floats
from scpslab.measure.traces import Flow

KIBI = 1024  # the report's axis: sequence number / 1024
MANY_PACKETS = 400  # in view, above which marks are drawn smaller


class TimeSequence(CellRecipe):
    """`cells` selects cells by axis values.

    One cell is drawn packet by packet, several as lines in one graph (FY97 Figs A-9, A-21).
    """

    plot: Literal["time-sequence"]
    capture: Literal["source", "sink"] = key("source", says="The place of the capture.", example="sink")

    def draw(self, source: Source) -> Figure:
        """Data as crosses, acknowledgements as dashes, retransmissions marked. Time counts from the connection's first
        packet.
        """
        cells = self.chosen(source)
        flows = [flow_at(cell, self.capture) for cell in cells]
        caption = f"{shown(source, cells)}; captured at the {self.capture}."
        if len(flows) > 1 and any(np.any(flow.is_repeated) for flow in flows):
            caption += " Lines lead through new data; open marks are data sent again."
        to_s = np.inf if self.x.max is None else self.x.max
        with new_figure(words(self, cells, caption)) as (figure, axes):
            if len(flows) == 1:
                _draw_packets(axes, flows[0], to_s)
            else:
                for index, (cell, flow) in enumerate(zip(cells, flows, strict=True)):
                    _draw_sequence(axes, flow, index, label_of(cell))
            _label(axes, self)
            # The y range of the points inside the x range, so that a detail of the first seconds fills the picture.
            tops = [int(flow.end[flow.t_s - start_of(flow) <= to_s].max(initial=0)) for flow in flows]
            axes.set_ylim(
                -0.02 * max(tops) / KIBI if self.y.min is None else self.y.min,
                1.06 * max(tops) / KIBI if self.y.max is None else self.y.max,
            )
        return figure


def start_of(flow: Flow) -> float:
    """The time of the connection's first packet: its SYN, else its first data."""
    return flow.syn_t_s if flow.syn_t_s is not None else float(flow.t_s.min(initial=np.inf))


def _draw_packets(axes: Axes, flow: Flow, to_s: float) -> None:
    zero, again = start_of(flow), flow.is_repeated
    t_s, kibi = flow.t_s - zero, flow.seq / KIBI
    size = 6 if int(np.count_nonzero(t_s <= to_s)) < MANY_PACKETS else 4
    _draw_marks(axes, t_s[~again], kibi[~again], "x", size, COLOURS[0], label="data")
    _draw_marks(axes, flow.ack_t_s - zero, flow.ack / KIBI, "_", size + 2, COLOURS[4], label="acknowledgement")
    if np.any(again):
        repeated = int(np.count_nonzero(again))
        axes.plot(
            t_s[again],
            kibi[again],
            linestyle="none",
            marker="D",
            markersize=6 if repeated < MANY_PACKETS // 4 else 2.5,
            markerfacecolor="none",
            markeredgewidth=1.2,
            color=COLOURS[1],
            label=f"data sent again ({repeated} in all)",
        )


def _draw_sequence(axes: Axes, flow: Flow, index: int, label: str) -> None:
    t_s, kibi, again = flow.t_s - start_of(flow), flow.seq / KIBI, flow.is_repeated
    # Cells of one colour have different styles.
    style = LINE_STYLES[index // len(COLOURS) % len(LINE_STYLES)] if index >= len(COLOURS) else line_style(index)
    # The line leads through new data alone: a retransmission would draw it down to old bytes and up again.
    axes.plot(t_s[~again], kibi[~again], linestyle=style, color=colour(index), label=label)
    repeated, shade = (t_s[again], kibi[again]), colour(index)
    axes.plot(*repeated, linestyle="none", marker=marker(index), markersize=4, color=shade, markerfacecolor="none")


def _draw_marks(axes: Axes, x: Floats, y: Floats, sign: str, size: float, colour: str, label: str) -> None:
    axes.plot(x, y, linestyle="none", marker=sign, markersize=size, color=colour, label=label)


def _label(axes: Axes, recipe: Recipe) -> None:
    axes.set_xlabel(recipe.x.label)
    axes.set_ylabel(recipe.y.label)
    axes.set_xlim(recipe.x.min or 0, recipe.x.max)
