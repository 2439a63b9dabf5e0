"""Kinds of pictures: one file per kind, one line in PLOTS with the recipe's model and the function that draws it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure

from scpslab.analysis.figures.plots import metric_vs_axis, over_time, points, queue_depth, rate, time_sequence
from scpslab.analysis.figures.recipe import Recipe
from scpslab.analysis.figures.source import Source

# Each function takes an instance of its model; `Any` cannot express that.
PLOTS: dict[str, tuple[type[Recipe], Callable[[Any, Source], tuple[Figure, str]]]] = {
    "aggregate-rate": (rate.AggregateRate, rate.draw_aggregate),
    "data-rate": (rate.DataRate, rate.draw_data),
    "metric-vs-axis": (metric_vs_axis.MetricVsAxis, metric_vs_axis.draw),
    "over-time": (over_time.OverTime, over_time.draw),
    "points": (points.Points, points.draw),
    "queue-depth": (queue_depth.QueueDepth, queue_depth.draw),
    "time-sequence": (time_sequence.TimeSequence, time_sequence.draw),
}
MODELS = {plot: model for plot, (model, _) in PLOTS.items()}
