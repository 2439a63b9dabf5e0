"""A transfer over time: windows and flight, round-trip time, queue, bytes arrived, throughput; one cell, or several
over each other. What was lost, and why, is shown by the studio.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import Field

from scpslab.analysis.figures.canvas import COLOURS, MUTED, colour, line_style, new_stack
from scpslab.analysis.figures.recipe import AxisStyle, CellRecipe, words
from scpslab.analysis.figures.source import NothingToDrawError, Source, flow_if_seen, label_of, shown, transfer_of
from scpslab.analysis.metrics.data_flows import DATA_FLOWS, load_packets
from scpslab.analysis.run import RunCell, bottleneck, steady_bps
from scpslab.core import units
from scpslab.core.addresses import ip_of
from scpslab.documents.parts import key
from scpslab.measure.connections import Floats, Ints
from scpslab.measure.states import NONE
from scpslab.measure.traces import binned_rate, flight_bytes, new_bytes, round_trips

if TYPE_CHECKING:
    from scpslab.analysis.run import Transfer

KILO, MEGA, MS_PER_S = 1e3, 1e6, 1e3
MOST_BINS = 1_000_000  # more fill the memory, and no picture shows them
MOST_CELLS = 4  # that are drawn over each other without being asked for
NO_THRESHOLD = 4.0  # a threshold above this many largest windows is the stack's word for "none yet"
WINDOW, ROUND_TRIP, DEPTH, ARRIVED, RATE = PANELS = (
    "window (kB)",
    "round trip (ms)",
    "queue (kB)",
    "arrived (kB)",
    "rate (Mbit/s)",
)
# What recipes call them.
WORDS = dict(zip(("window", "round-trip", "queue", "arrived", "rate"), PANELS, strict=True))
CONGESTION = "congestion"
UNACKNOWLEDGED = "unacknowledged"  # bytes behind a hole count, so it may exceed cwnd
# The link rate is drawn where some throughput comes up to this share of it: else it would flatten the curves.
SHOWN_RATE = 0.3

Series: TypeAlias = tuple[Floats, Floats]  # seconds since the transfer's start, values
NOTHING: Series = (np.zeros(0), np.zeros(0))


class OverTime(CellRecipe):
    """Panels without data are left out.

    Without `cells`, the first repeat of each point of the sweep is drawn: four at most.

    Attributes:
        quantities: What to draw, of what has data.
        bin_s: Width of a bin of the rate in seconds.
        y: Not used: every panel has its own unit.
    """

    plot: Literal["over-time"]
    quantities: tuple[Literal["window", "round-trip", "queue", "arrived", "rate"], ...] = key(
        tuple(WORDS), example=["rate"]
    )
    bin_s: Annotated[float, Field(gt=0)] = key(0.5, example=0.5)
    y: AxisStyle = key(AxisStyle(label="(each panel has its own unit)"))

    def draw(self, source: Source) -> Figure:
        """Time counts from the start of the transfer.

        Raises:
            NothingToDrawError: the run has neither a record of packets nor a capture of the transfer.
        """
        cells = self.chosen(source)
        wanted = [panel for word, panel in WORDS.items() if word in self.quantities]
        histories = [_history(cell, self.bin_s).only(wanted) for cell in cells]
        drawn = [panel for panel in wanted if any(history.has(panel) for history in histories)]
        if not drawn:
            found = "found no record of packets, and no capture of the transfer"
            advice = "Run it with packets: true."
            raise NothingToDrawError(f"{cells[0].folder}: {found}; expected one. {advice}")
        caption = self._caption(source, cells, histories)
        with new_stack(words(self, cells, caption), [1.0] * len(drawn)) as (figure, panels):
            for panel, axes in zip(drawn, panels, strict=True):
                for index, history in enumerate(histories):
                    _draw_panel(axes, panel, history, index, is_alone=len(histories) == 1)
                axes.set_ylabel(panel)
                axes.set_ylim(0, 1.08 * max(axes.dataLim.y1, 1e-9))
            panels[-1].set_xlabel(self.x.label)
            panels[-1].set_xlim(self.x.min or 0, self.x.max)
        return figure

    def chosen(self, source: Source) -> list[RunCell]:
        """The cells to draw: without a choice, some that are spread over the sweep, its ends included."""
        near = self._points(source)
        if not near:
            return source.cells(self.cells)
        at = np.unique(np.linspace(0, len(near) - 1, min(MOST_CELLS, len(near))).round().astype(int)).tolist()
        return [near[index] for index in at]

    def _points(self, source: Source) -> list[RunCell]:
        """A completed cell of each point of the sweep; none where cells are chosen."""
        if self.cells or source.wanted_cells:
            return []
        done = [cell for cell in source.run.cells if cell.status == "completed"]
        return list({tuple(cell.plan.cell.axes.items()): cell for cell in reversed(done)}.values())[::-1]

    def _caption(self, source: Source, cells: Sequence[RunCell], histories: Sequence[_History]) -> str:
        """What was drawn and where it was measured."""
        sentences = [f"{shown(source, cells)}."]
        if places := " and ".join(sorted({history.rate_at for history in histories if history.has(RATE)})):
            sentences.append(
                f"Arrived and rate: user bytes seen for the first time at the {places}; rate in bins of "
                f"{self.bin_s:g} s."
            )
        if any(len(history.series[CONGESTION][0]) for history in histories):
            sentences.append("Grey: IP packets of the congestion generator at the source.")
        if len(cells) > 1 and any(history.has(WINDOW) for history in histories):
            has_threshold = any(len(history.series["ssthresh"][0]) for history in histories)
            sentences.append(f"Thin: {UNACKNOWLEDGED}{'; dotted: ssthresh' if has_threshold else ''}.")
        if any(history.has(ROUND_TRIP) and not history.is_round_trip_smoothed for history in histories):
            sentences.append("Round trips: single samples of packets at the source.")
        if rates := sorted({history.link_bps for history in histories if history.link_bps}):
            sentences.append(f"Link rate: {', '.join(units.text('rate', rate) for rate in rates)}.")
        if hops := sorted({history.hop for history in histories if history.has(DEPTH)}):
            sentences.append(f"Queue: before {' and '.join(hops)}.")
        if left_out := max(0, len(self._points(source)) - len(cells)):
            sentences.append(
                f"{left_out} other points of the sweep are not drawn ({MOST_CELLS} at most): choose cells with --cell."
            )
        return " ".join(sentences)


@dataclass(frozen=True)
class _History:
    """What is known of one cell's transfer.

    `series`: by panel, those of the windows as cwnd, ssthresh and flight; one without samples was not recorded. `hop`:
    the slowest one's direction.
    """

    label: str
    series: Mapping[str, Series]
    is_round_trip_smoothed: bool
    link_bps: int | None
    hop: str
    rate_at: str

    def only(self, panels: Sequence[str]) -> _History:
        """What these panels show of it."""
        lines = {WINDOW: ("cwnd", "ssthresh", "flight"), RATE: (RATE, CONGESTION)}
        kept = {name for panel in panels for name in lines.get(panel, (panel,))}
        series = {name: its if name in kept else NOTHING for name, its in self.series.items()}
        return replace(self, series=series)

    def has(self, panel: str) -> bool:
        """Whether a panel shows something of it."""
        return any(len(self.series[name][0]) for name in (("cwnd", "flight") if panel == WINDOW else (panel,)))


def _history(cell: RunCell, bin_s: float) -> _History:
    workload = transfer_of(cell)
    start_s = workload.start_ns / 1e9
    sent, arrived = (flow_if_seen(cell, where) for where in ("source", "sink"))
    told = _told_by_sender(cell, workload, start_s)
    is_smoothed = bool(len(told[ROUND_TRIP][0]))
    if sent is not None:
        t_s, under_way = flight_bytes(sent)
        told["flight"] = (t_s - start_s, under_way.astype(np.float64))
        if not is_smoothed:
            t_s, rtt_s = round_trips(sent)
            told[ROUND_TRIP] = (t_s - start_s, rtt_s * MS_PER_S)
    largest = max((float(told[name][1].max(initial=0.0)) for name in ("cwnd", "flight")), default=0.0)
    t_s, threshold = told["ssthresh"]
    is_set = threshold <= NO_THRESHOLD * largest
    told["ssthresh"] = (t_s, np.where(is_set, threshold, np.nan)) if np.any(is_set) else NOTHING
    hop = bottleneck(cell.plan, workload)
    place = hop.place if hop else ("", "")
    t_s, depth_bytes = cell.record.depth(*hop.place) if hop and cell.record else NOTHING
    series = {
        **{name: (told[name][0], told[name][1] / KILO) for name in ("flight", "cwnd", "ssthresh")},
        ROUND_TRIP: told[ROUND_TRIP],
        DEPTH: (t_s - start_s, depth_bytes / KILO),
        ARRIVED: NOTHING,
        RATE: NOTHING,
        CONGESTION: NOTHING,
    }
    seen = arrived if arrived is not None else sent
    if seen is not None:
        at_s, new = seen.t_s - start_s, new_bytes(seen)
        end_s = float(seen.t_s.max(initial=start_s)) - start_s
        series |= {
            ARRIVED: (at_s, np.cumsum(new).astype(np.float64) / KILO),
            RATE: _rate(cell, at_s, new, bin_s, end_s),
        }
        load_t_s, load_bytes = load_packets(cell)
        if len(load_t_s):
            series[CONGESTION] = _rate(cell, load_t_s - start_s, load_bytes, bin_s, end_s)
    return _History(
        label=label_of(cell),
        series=series,
        is_round_trip_smoothed=is_smoothed,
        link_bps=steady_bps(cell.plan, hop),
        hop=f"{place[0]}, {place[1]} direction",
        rate_at="sink" if arrived is not None else "source",
    )


def _rate(cell: RunCell, t_s: Floats, size_bytes: Ints, bin_s: float, end_s: float) -> Series:
    """In Mbit/s at the middles of the bins.

    Raises:
        NothingToDrawError: too many bins.
    """
    if end_s > MOST_BINS * bin_s:
        expected = f"expected at most {MOST_BINS} bins. Choose a larger one in the recipe."
        raise NothingToDrawError(f"{cell.folder}: found a bin_s of {bin_s:g} for {end_s:g} s; {expected}")
    edges, rate_bps = binned_rate(t_s, size_bytes, bin_s, 0.0, end_s)
    return edges + bin_s / 2, rate_bps / MEGA


def _told_by_sender(cell: RunCell, workload: Transfer, start_s: float) -> dict[str, Series]:
    """The sender's own view at each acknowledgement; a rate alone has no window."""
    own = [one for one in cell.senders if _is_of(workload, one.remote) and one.gateway in ("", workload.from_)]
    if not own:
        return dict.fromkeys(("cwnd", "ssthresh", "flight", ROUND_TRIP), NOTHING)
    # iperf3 and the file protocols have another connection, for control.
    one = max(own, key=lambda one: len(one.t_ns))
    t_s, has_window = one.t_ns / 1e9 - start_s, one.cwnd_bytes != NONE
    return {
        "cwnd": (t_s[has_window], one.cwnd_bytes[has_window].astype(np.float64)),
        "ssthresh": (t_s, np.where(one.ssthresh_bytes == NONE, np.inf, one.ssthresh_bytes)),
        "flight": NOTHING,
        ROUND_TRIP: (t_s, one.srtt_us / MS_PER_S),
    }


def _is_of(workload: Transfer, remote: str) -> bool:
    """Whether a connection of the sender with this other end may carry the transfer: a file's data connection has a
    port of its own.
    """
    port = remote.rpartition(":")[2]
    return ip_of(remote) == workload.to_ip and DATA_FLOWS[workload.kind].has_own_port == (port == str(workload.port))


def _draw_panel(axes: Axes, panel: str, history: _History, index: int, *, is_alone: bool) -> None:
    own, label = colour(index), None if is_alone else history.label
    if panel == WINDOW:
        for name, alone, width, style, alpha in (
            ("flight", COLOURS[1], 0.7, "-", 0.75),
            ("cwnd", own, 1.7, line_style(index), None),
            ("ssthresh", COLOURS[2], 1.2, ":", None),
        ):
            series = history.series[name]
            own_name = {"flight": UNACKNOWLEDGED}.get(name, name) if len(series[0]) else None
            its = own_name if is_alone else label if name == "cwnd" else None
            shade = alone if is_alone else own
            axes.plot(*series, color=shade, linewidth=width, linestyle=style, alpha=alpha, label=its)
    elif panel == ROUND_TRIP and not history.is_round_trip_smoothed:
        axes.plot(*history.series[panel], color=own, linestyle="none", marker=".", markersize=2.5)
    else:
        # What was counted holds until the next count.
        steps, width = "steps-post" if panel in (DEPTH, ARRIVED) else "default", 1.1 if panel == DEPTH else 1.4
        style = line_style(index)
        axes.plot(*history.series[panel], linewidth=width, label=label, color=own, linestyle=style, drawstyle=steps)
    if panel == RATE and len(history.series[CONGESTION][0]):
        axes.plot(*history.series[CONGESTION], color=MUTED, linewidth=1, label=CONGESTION if is_alone else None)
    if panel == RATE and history.link_bps:
        link = history.link_bps / MEGA
        name = f"link rate {units.text('rate', history.link_bps)}"
        is_named = name in axes.get_legend_handles_labels()[1]
        if not is_named and history.series[RATE][1].max(initial=0.0) >= SHOWN_RATE * link:
            axes.axhline(link, color=MUTED, linewidth=1, linestyle=(0, (6, 3)), label=name)
