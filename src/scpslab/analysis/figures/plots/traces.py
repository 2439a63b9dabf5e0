"""Single cells over time, as captures and queue probes saw them: sequence numbers (apparatus M-05; FY97 Figs A-1, A-2),
rates in bins (apparatus M-06 and M-07; Figs A-3, A-10, A-11), the router's queue (apparatus M-08; Figs A-12, A-17).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import Field

from scpslab.analysis.figures.canvas import COLOURS, LINE_STYLES, MUTED, colour, line_style, marker, new_figure
from scpslab.analysis.figures.recipe import CellRecipe, Recipe
from scpslab.analysis.figures.source import (
    NothingToDrawError,
    Source,
    flow_at,
    flow_if_seen,
    label_of,
    shown,
    transfer_of,
)
from scpslab.analysis.figures.words import words
from scpslab.analysis.metrics.data_flows import DATA_FLOWS, load_packets, queue_samples
from scpslab.analysis.run import RunCell
from scpslab.analysis.viewpoints import bottleneck, bottleneck_bps
from scpslab.documents import key
from scpslab.measure.connections import UDP, Floats, Ints
from scpslab.measure.traces import Flow, binned_rate, queue_estimate

KILO, MEGA = 1e3, 1e6
KIBI = 1024  # the report's axis: sequence number / 1024
MOST_BINS = 1_000_000  # more fill the memory, and no picture shows them
MANY_BINS = 120  # above which only the line is drawn
MANY_PACKETS = 400  # in view, above which marks are drawn smaller
BinWidth = Annotated[float, Field(gt=0)]
BIN = key(0.5, says="Width of a bin in seconds.", example=0.5)


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


class DataRate(CellRecipe):
    """User bytes only, no headers.

    At the source retransmissions count as sent; at the sink only arrived bytes count.
    """

    plot: Literal["data-rate"]
    capture: Literal["source", "sink"] = key("source", says="The place of the capture.", example="sink")
    bin_s: BinWidth = BIN

    def draw(self, source: Source) -> Figure:
        """Time counts from the connection's first packet."""
        cells = self.chosen(source)
        caption = f"{shown(source, cells)}; user bytes in {self.bin_s:g} s bins, captured at the {self.capture}."
        with new_figure(words(self, cells, caption)) as (figure, axes):
            for index, cell in enumerate(cells):
                flow = flow_at(cell, self.capture)
                zero = start_of(flow)
                end_s = float(flow.t_s.max(initial=zero)) - zero
                at, rate = rate_in_bins(cell, flow.t_s - zero, flow.end - flow.seq, self.bin_s, end_s)
                _draw_bins(axes, at + self.bin_s / 2, rate, index, label_of(cell))
            _finish_rates(axes, self, cells)
        return figure


class AggregateRate(CellRecipe):
    """Bulk and congestion traffic in whole IP packets, and their sum compared with the link's rate, seen on the source
    LAN.
    """

    most_cells: ClassVar[int | None] = 1
    plot: Literal["aggregate-rate"]
    bin_s: BinWidth = BIN

    def draw(self, source: Source) -> Figure:
        """Time counts from the epoch."""
        (cell,) = cells = self.chosen(source)
        bulk, congestion = _packet_sizes(cell)
        caption = (
            f"{shown(source, cells)}; whole IP packets towards the sink in {self.bin_s:g} s bins, captured near the "
            "source."
        )
        with new_figure(words(self, cells, caption)) as (figure, axes):
            end_s = float(bulk[0].max(initial=0.0))
            at, bulk_rate = rate_in_bins(cell, *bulk, self.bin_s, end_s)
            _, congestion_rate = rate_in_bins(cell, *congestion, self.bin_s, end_s)
            middle = at + self.bin_s / 2
            _draw_bins(axes, middle, bulk_rate, 0, "transfer")
            if len(congestion[0]):
                _draw_bins(axes, middle, congestion_rate, 1, "congestion")
                _draw_bins(axes, middle, bulk_rate + congestion_rate, 2, "sum")
            _finish_rates(axes, self, cells)
        return figure


class QueueDepth(CellRecipe):
    """Draws the first queue probe on the data path, and the estimate from the capture near the source; either may be
    missing.
    """

    most_cells: ClassVar[int | None] = 1
    plot: Literal["queue-depth"]

    def draw(self, source: Source) -> Figure:
        """Time counts from the epoch.

        Raises:
            NothingToDrawError: neither a queue probe nor a capture.
        """
        (cell,) = cells = self.chosen(source)
        hop = bottleneck(cell.plan, transfer_of(cell))
        t_s, depth_bytes, _ = queue_samples(cell, hop)
        flow = flow_if_seen(cell, "source")
        rate_bps = hop.direction.rate_bps if hop else None
        ack_t_s, estimate_bytes = queue_estimate(flow, rate_bps) if flow and rate_bps else (np.zeros(0), np.zeros(0))
        if not len(t_s) and not len(ack_t_s):
            raise NothingToDrawError(
                f"{cell.folder}: found neither a queue probe on the data path nor a capture near the source; "
                "expected one of them. Add it to the probes."
            )
        caption = f"{shown(source, cells)}."
        if len(ack_t_s):
            caption += " Estimate: (RTT - smallest RTT) x link rate / 8."
        with new_figure(words(self, cells, caption)) as (figure, axes):
            if len(t_s):
                where = f"the link {hop.link.name}, {hop.direction.name}" if hop else "the link"
                axes.plot(
                    t_s,
                    depth_bytes / KILO,
                    drawstyle="steps-post",
                    color=COLOURS[0],
                    linewidth=1.2,
                    label=f"queue before {where}",
                )
            if len(ack_t_s):
                _draw_marks(axes, ack_t_s, estimate_bytes / KILO, "x", 4, COLOURS[1], label="estimate from round trips")
            _label(axes, self)
            axes.set_ylim(self.y.min or 0, self.y.max)
            axes.margins(y=0.12)
        return figure


def start_of(flow: Flow) -> float:
    """The time of the connection's first packet: its SYN, else its first data."""
    return flow.syn_t_s if flow.syn_t_s is not None else float(flow.t_s.min(initial=np.inf))


def rate_in_bins(cell: RunCell, t_s: Floats, size_bytes: Ints, bin_s: float, end_s: float) -> tuple[Floats, Floats]:
    """As `binned_rate`, from 0 on.

    Raises:
        NothingToDrawError: too many bins.
    """
    if end_s > MOST_BINS * bin_s:
        raise NothingToDrawError(
            f"{cell.folder}: found a bin_s of {bin_s:g} for {end_s:g} s; expected at most {MOST_BINS} bins. "
            "Choose a larger one in the recipe."
        )
    return binned_rate(t_s, size_bytes, bin_s, 0.0, end_s)


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


def _draw_bins(axes: Axes, middle_s: Floats, rate_bps: Floats, index: int, label: str) -> None:
    axes.plot(
        middle_s,
        rate_bps / MEGA,
        color=colour(index),
        linestyle=line_style(index),
        marker=marker(index),
        markersize=4 if len(middle_s) <= MANY_BINS else 0,
        linewidth=1.3,
        label=label,
    )


def _packet_sizes(cell: RunCell) -> tuple[tuple[Floats, Ints], tuple[Floats, Ints]]:
    """Times since the epoch and IP bytes of the transfer's packets, and of the congestion generator's, both towards the
    sink.
    """
    workload = transfer_of(cell)
    if not DATA_FLOWS[workload.kind].has_own_port:
        raise NothingToDrawError(
            f"{cell.folder}: found a workload of kind {workload.kind}, whose data connection has no port of its "
            "own; expected another."
        )
    view = cell.view(workload.from_)
    if view is None:
        raise NothingToDrawError(
            f"{cell.folder}: found neither a record of packets nor a capture near {workload.from_}; expected one. "
            "Run it with packets: true."
        )
    is_bulk = (view.packets.protocol != UDP) & (view.packets.destination_port == workload.port)
    return (view.t_s[is_bulk], view.packets.ip_bytes[is_bulk]), load_packets(cell)


def _finish_rates(axes: Axes, recipe: Recipe, cells: Sequence[RunCell]) -> None:
    """The link's rates, and room above what is drawn."""
    rates_bps = {bottleneck_bps(cell.plan, transfer_of(cell)) for cell in cells}
    for rate in (rate_bps / MEGA for rate_bps in sorted(filter(None, rates_bps))):
        axes.axhline(rate, color=MUTED, linewidth=1, linestyle=(0, (6, 3)), label=f"link rate {rate:g} Mbit/s")
    _label(axes, recipe)
    low, high = axes.get_ylim()
    axes.set_ylim(recipe.y.min or 0, recipe.y.max or high + 0.12 * (high - low))


def _label(axes: Axes, recipe: Recipe) -> None:
    axes.set_xlabel(recipe.x.label)
    axes.set_ylabel(recipe.y.label)
    axes.set_xlim(recipe.x.min or 0, recipe.x.max)
