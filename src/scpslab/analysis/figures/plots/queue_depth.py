"""The router's queue over time: its true depth, and FY97's estimate from round trips (apparatus M-08; Figs A-12,
A-17).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from matplotlib.figure import Figure

from scpslab.analysis.capture import Floats
from scpslab.analysis.figures.canvas import COLOURS, new_figure
from scpslab.analysis.figures.recipe import CellRecipe
from scpslab.analysis.figures.source import NothingToDrawError, Source, flow_at, label_of, transfer_of
from scpslab.analysis.figures.words import words
from scpslab.analysis.metrics.shape import queue_samples
from scpslab.analysis.run import RunCell
from scpslab.analysis.traces import queue_estimate
from scpslab.analysis.viewpoints import bottleneck, bottleneck_bps

KILO = 1000


class QueueDepth(CellRecipe):
    """Draws the first queue probe on the data path, and the estimate from the capture near the source; either may be
    missing.
    """

    plot: Literal["queue-depth"]


def draw(recipe: QueueDepth, source: Source) -> tuple[Figure, str]:
    """The figure and its file name's stem. Time counts from the epoch.

    Raises:
        UsageError: no such cell.
        NothingToDrawError: neither a queue probe nor a capture.
    """
    cell = source.cells(recipe.cells)[0]
    true_t_s, true_bytes = _true_depth(cell)
    estimate_t_s, estimate_bytes = _estimate(cell)
    if not len(true_t_s) and not len(estimate_t_s):
        raise NothingToDrawError(
            f"{cell.folder}: found neither a queue probe on the data path nor a capture near the source; "
            "expected one of them. Add it to the probes."
        )
    caption = f"Run {source.run_dir.name}, {label_of(cell)}, repeat {cell.plan.cell.repeat}."
    if len(estimate_t_s):
        caption += " Estimate: (RTT - smallest RTT) x link rate / 8."
    with new_figure(words(recipe, [cell], caption)) as (figure, axes):
        if len(true_t_s):
            axes.plot(
                true_t_s,
                true_bytes / KILO,
                drawstyle="steps-post",
                color=COLOURS[0],
                linewidth=1.2,
                label=f"queue before {_named(cell)}",
            )
        if len(estimate_t_s):
            axes.plot(
                estimate_t_s,
                estimate_bytes / KILO,
                linestyle="none",
                marker="x",
                markersize=4,
                color=COLOURS[1],
                label="estimate from round trips",
            )
        axes.set_xlabel(recipe.x.label)
        axes.set_ylabel(recipe.y.label)
        axes.set_xlim(recipe.x.min or 0, recipe.x.max)
        axes.set_ylim(recipe.y.min or 0, recipe.y.max)
        axes.margins(y=0.12)
    return figure, f"{recipe.name}-{cell.folder.name}" if source.wanted_cells else recipe.name


def _named(cell: RunCell) -> str:
    hop = bottleneck(cell.plan, transfer_of(cell))
    return f"the link {hop.link.name}, {hop.direction.name}" if hop else "the link"


def _true_depth(cell: RunCell) -> tuple[Floats, Floats]:
    """Samples of the queue probe on the data path's slowest hop: seconds since the epoch and bytes, both float64[n]."""
    hop = bottleneck(cell.plan, transfer_of(cell))
    return queue_samples(cell, hop) if hop else (np.zeros(0), np.zeros(0))


def _estimate(cell: RunCell) -> tuple[Floats, Floats]:
    rate_bps = bottleneck_bps(cell.plan, transfer_of(cell))
    try:
        flow = flow_at(cell, "source")
    except NothingToDrawError:
        return np.zeros(0), np.zeros(0)
    return queue_estimate(flow, rate_bps) if rate_bps else (np.zeros(0), np.zeros(0))
