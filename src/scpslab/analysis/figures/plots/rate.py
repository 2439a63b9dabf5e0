"""Rates in bins: the transfer's user bytes (apparatus M-06; FY97 Fig A-3), and bulk plus congestion against the link
rate (apparatus M-07; Figs A-10, A-11).
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import Field

from scpslab.analysis.capture import UDP, Floats, Ints
from scpslab.analysis.figures.canvas import COLOURS, LINE_STYLES, MARKERS, MUTED, new_figure
from scpslab.analysis.figures.plots.time_sequence import start_of
from scpslab.analysis.figures.recipe import CellRecipe, Recipe
from scpslab.analysis.figures.source import NothingToDrawError, Source, flow_at, label_of, transfer_of
from scpslab.analysis.figures.words import words
from scpslab.analysis.metrics.data_flows import DATA_FLOWS, load_ports
from scpslab.analysis.run import RunCell
from scpslab.analysis.traces import binned_rate
from scpslab.analysis.viewpoints import bottleneck_bps, capture_at, capture_beside
from scpslab.documents import key

MBIT = 1e6
BinWidth = Annotated[float, Field(gt=0)]
BIN = key(0.5, says="Width of a bin in seconds.", example=0.5)
MOST_BINS = 1_000_000  # more fill the memory, and no picture shows them
CROWD = 120  # bins above which only the line is drawn


class DataRate(CellRecipe):
    """User bytes only, no headers.

    At the source retransmissions count as sent; at the sink only arrived bytes count.
    """

    plot: Literal["data-rate"]
    capture: Literal["source", "sink"] = key("source", says="The place of the capture.", example="sink")
    bin_s: BinWidth = BIN


class AggregateRate(CellRecipe):
    """Bulk and congestion traffic in whole IP packets, and their sum compared with the link's rate, seen on the source
    LAN.
    """

    plot: Literal["aggregate-rate"]
    bin_s: BinWidth = BIN


def draw_data(recipe: DataRate, source: Source) -> tuple[Figure, str]:
    """The figure and its file name's stem. Time counts from the connection's first packet.

    Raises:
        UsageError: no such cell.
        NothingToDrawError: no capture at the place the recipe names.
    """
    cells = source.cells(recipe.cells)
    caption = (
        f"Run {source.run_dir.name}, {_shown(cells)}; user bytes in {recipe.bin_s:g} s bins, captured at the "
        f"{recipe.capture}."
    )
    with new_figure(words(recipe, cells, caption)) as (figure, axes):
        for index, cell in enumerate(cells):
            flow = flow_at(cell, recipe.capture)
            zero = start_of(flow)
            at, rate = rate_in_bins(
                cell, flow.t_s - zero, flow.end - flow.seq, recipe.bin_s, float(flow.t_s.max(initial=zero)) - zero
            )
            _draw_bins(axes, at + recipe.bin_s / 2, rate, index, label_of(cell))
        _draw_link_rates(axes, cells)
        _finish(axes, recipe)
    return figure, _stem(recipe, source, cells)


def draw_aggregate(recipe: AggregateRate, source: Source) -> tuple[Figure, str]:
    """The figure and its file name's stem. Time counts from the epoch.

    Raises:
        UsageError: no such cell.
        NothingToDrawError: no capture near the source.
    """
    cells = source.cells(recipe.cells)[:1]
    cell = cells[0]
    bulk, congestion = _sizes(cell)
    caption = (
        f"Run {source.run_dir.name}, {_shown(cells)}; whole IP packets towards the sink in {recipe.bin_s:g} s bins, "
        "captured near the source."
    )
    with new_figure(words(recipe, cells, caption)) as (figure, axes):
        end_s = float(bulk[0].max(initial=0.0))
        at, bulk_rate = rate_in_bins(cell, *bulk, recipe.bin_s, end_s)
        _, congestion_rate = rate_in_bins(cell, *congestion, recipe.bin_s, end_s)
        middle = at + recipe.bin_s / 2
        _draw_bins(axes, middle, bulk_rate, 0, "transfer")
        if len(congestion[0]):
            _draw_bins(axes, middle, congestion_rate, 1, "congestion")
            _draw_bins(axes, middle, bulk_rate + congestion_rate, 2, "sum")
        _draw_link_rates(axes, cells)
        _finish(axes, recipe)
    return figure, _stem(recipe, source, cells)


def rate_in_bins(cell: RunCell, t_s: Floats, size_bytes: Ints, bin_s: float, end_s: float) -> tuple[Floats, Floats]:
    """As `binned_rate`, from 0 on.

    Raises:
        NothingToDrawError: too many bins.
    """
    if end_s > MOST_BINS * bin_s:
        found = (
            f"found a bin_s of {bin_s:g} for {end_s:g} s; expected at most {MOST_BINS} bins. "
            "Choose a larger one in the recipe."
        )
        raise NothingToDrawError(f"{cell.folder}: {found}")
    return binned_rate(t_s, size_bytes, bin_s, 0.0, end_s)


def _sizes(cell: RunCell) -> tuple[tuple[Floats, Ints], tuple[Floats, Ints]]:
    """Times since the epoch and IP bytes of the transfer's packets, and of the congestion generator's, both towards the
    sink.
    """
    workload = transfer_of(cell)
    if not DATA_FLOWS[workload.kind].has_own_port:
        raise NothingToDrawError(
            f"{cell.folder}: found a workload of kind {workload.kind}, whose data connection has no port of its "
            "own; expected another."
        )
    probe = capture_beside(cell.plan, workload.from_) or capture_at(cell.plan, workload.from_)
    packets = cell.packets(probe.name) if probe else None
    if packets is None:
        raise NothingToDrawError(
            f"{cell.folder}: found no capture near {workload.from_}; expected one on the source or on its LAN's "
            "monitor. Add a capture probe there."
        )
    ports = load_ports(cell.plan)
    t_s = (packets.t_ns - (cell.epoch_realtime_ns or 0)) / 1e9
    is_bulk = (packets.protocol != UDP) & (packets.destination_port == workload.port)
    is_congestion = (packets.protocol == UDP) & np.isin(packets.destination_port, ports)
    return (t_s[is_bulk], packets.ip_bytes[is_bulk]), (t_s[is_congestion], packets.ip_bytes[is_congestion])


def _draw_bins(axes: Axes, middle_s: Floats, rate_bps: Floats, index: int, label: str) -> None:
    axes.plot(
        middle_s,
        rate_bps / MBIT,
        color=COLOURS[index % len(COLOURS)],
        linestyle=LINE_STYLES[index % len(LINE_STYLES)],
        marker=MARKERS[index % len(MARKERS)],
        markersize=4 if len(middle_s) <= CROWD else 0,
        linewidth=1.3,
        label=label,
    )


def _draw_link_rates(axes: Axes, cells: list[RunCell]) -> None:
    rates_bps = {bottleneck_bps(cell.plan, transfer_of(cell)) for cell in cells}
    for rate_bps in sorted(filter(None, rates_bps)):
        axes.axhline(
            rate_bps / MBIT,
            color=MUTED,
            linewidth=1,
            linestyle=(0, (6, 3)),
            label=f"link rate {rate_bps / MBIT:g} Mbit/s",
        )


def _finish(axes: Axes, recipe: Recipe) -> None:
    axes.set_xlabel(recipe.x.label)
    axes.set_ylabel(recipe.y.label)
    axes.set_xlim(recipe.x.min or 0, recipe.x.max)
    low, high = axes.get_ylim()
    axes.set_ylim(recipe.y.min or 0, recipe.y.max or high + 0.12 * (high - low))


def _shown(cells: list[RunCell]) -> str:
    return f"{label_of(cells[0])}, repeat {cells[0].plan.cell.repeat}" if len(cells) == 1 else f"{len(cells)} cells"


def _stem(recipe: Recipe, source: Source, cells: list[RunCell]) -> str:
    return "-".join([recipe.name, *(cell.folder.name for cell in cells)]) if source.wanted_cells else recipe.name
