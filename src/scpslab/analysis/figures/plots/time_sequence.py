"""Sequence number against time: data as crosses, acknowledgements as dashes, retransmissions marked (apparatus M-05;
FY97 Figs A-1, A-2).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scpslab.analysis.figures.canvas import COLOURS, LINE_STYLES, MARKERS, new_figure
from scpslab.analysis.figures.recipe import CellRecipe
from scpslab.analysis.figures.source import Source, flow_at, label_of
from scpslab.analysis.figures.words import words
from scpslab.analysis.run import RunCell
from scpslab.analysis.traces import Flow
from scpslab.documents import key

CROWD = 400  # packets in view above which marks are drawn smaller
KIBI = 1024  # the report's axis: sequence number / 1024


class TimeSequence(CellRecipe):
    """`cells` selects cells by axis values.

    One cell is drawn packet by packet, several as lines in one graph (FY97 Figs A-9, A-21).
    """

    plot: Literal["time-sequence"]
    capture: Literal["source", "sink"] = key("source", says="The place of the capture.", example="sink")


def draw(recipe: TimeSequence, source: Source) -> tuple[Figure, str]:
    """The figure and its file name's stem. Time counts from the connection's first packet.

    Raises:
        UsageError: no such cell.
        NothingToDrawError: no capture at the place the recipe names.
    """
    cells = source.cells(recipe.cells)
    flows = [flow_at(cell, recipe.capture) for cell in cells]
    shown = label_of(cells[0]) + f", repeat {cells[0].plan.cell.repeat}" if len(cells) == 1 else f"{len(cells)} cells"
    caption = f"Run {source.run_dir.name}, {shown}; captured at the {recipe.capture}."
    if len(flows) > 1 and any(np.any(flow.is_repeated) for flow in flows):
        caption += " Lines lead through new data; open marks are data sent again."
    with new_figure(words(recipe, cells, caption)) as (figure, axes):
        if len(flows) == 1:
            _draw_packets(axes, flows[0], recipe.x.max)
        else:
            _draw_lines(axes, cells, flows)
        axes.set_xlabel(recipe.x.label)
        axes.set_ylabel(recipe.y.label)
        axes.set_xlim(recipe.x.min or 0, recipe.x.max)
        _fit_height(axes, flows, recipe)
    return figure, _stem(recipe, source, cells)


def start_of(flow: Flow) -> float:
    """The time of the connection's first packet: its SYN, else its first data."""
    return flow.syn_t_s if flow.syn_t_s is not None else float(flow.t_s.min(initial=np.inf))


def _draw_packets(axes: Axes, flow: Flow, to_s: float | None) -> None:
    zero = start_of(flow)
    t_s, ack_t_s = flow.t_s - zero, flow.ack_t_s - zero
    first, again = ~flow.is_repeated, flow.is_repeated
    in_view = int(np.count_nonzero(t_s <= (np.inf if to_s is None else to_s)))
    size = 6 if in_view < CROWD else 4
    axes.plot(
        t_s[first],
        flow.seq[first] / KIBI,
        linestyle="none",
        marker="x",
        markersize=size,
        color=COLOURS[0],
        label="data",
    )
    axes.plot(
        ack_t_s,
        flow.ack / KIBI,
        linestyle="none",
        marker="_",
        markersize=size + 2,
        color=COLOURS[4],
        label="acknowledgement",
    )
    if np.any(again):
        axes.plot(
            t_s[again],
            flow.seq[again] / KIBI,
            linestyle="none",
            marker="D",
            markersize=6 if int(np.count_nonzero(again)) < CROWD // 4 else 2.5,
            markerfacecolor="none",
            markeredgewidth=1.2,
            color=COLOURS[1],
            label=f"data sent again ({int(again.sum())} in all)",
        )


def _draw_lines(axes: Axes, cells: list[RunCell], flows: list[Flow]) -> None:
    for index, (cell, flow) in enumerate(zip(cells, flows, strict=True)):
        style = (
            LINE_STYLES[index // len(COLOURS) % len(LINE_STYLES)]
            if index >= len(COLOURS)
            else LINE_STYLES[index % len(LINE_STYLES)]
        )
        colour, t_s, again = COLOURS[index % len(COLOURS)], flow.t_s - start_of(flow), flow.is_repeated
        # The line leads through new data alone: a retransmission would draw it down to old bytes and up again.
        axes.plot(t_s[~again], flow.seq[~again] / KIBI, linestyle=style, color=colour, label=label_of(cell))
        marker = MARKERS[index % len(MARKERS)]
        axes.plot(
            t_s[again],
            flow.seq[again] / KIBI,
            linestyle="none",
            marker=marker,
            markersize=4,
            markerfacecolor="none",
            color=colour,
        )


def _fit_height(axes: Axes, flows: list[Flow], recipe: TimeSequence) -> None:
    """The y range of the points inside the x range, so that a detail of the first seconds fills the picture."""
    to_s = np.inf if recipe.x.max is None else recipe.x.max
    highest = max((int(flow.end[flow.t_s - start_of(flow) <= to_s].max(initial=0)) for flow in flows), default=0)
    axes.set_ylim(
        -0.02 * highest / KIBI if recipe.y.min is None else recipe.y.min,
        1.06 * highest / KIBI if recipe.y.max is None else recipe.y.max,
    )


def _stem(recipe: TimeSequence, source: Source, cells: list[RunCell]) -> str:
    """The recipe's name, with the cell's when the user chose it."""
    return "-".join([recipe.name, *(cell.folder.name for cell in cells)]) if source.wanted_cells else recipe.name
