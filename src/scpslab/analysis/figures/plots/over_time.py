"""A transfer over time: windows and flight, round-trip time, queue, losses, bytes arrived, throughput; one cell, or
several over each other.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scpslab.analysis.capture import Floats, Ints
from scpslab.analysis.figures.canvas import COLOURS, LINE_STYLES, MUTED, new_stack
from scpslab.analysis.figures.plots.rate import BIN, BinWidth, rate_in_bins
from scpslab.analysis.figures.recipe import AxisStyle, CellRecipe
from scpslab.analysis.figures.source import NothingToDrawError, Source, connection_at, flow_at, label_of, transfer_of
from scpslab.analysis.figures.words import words
from scpslab.analysis.lost_packets import Lost, find_losses
from scpslab.analysis.metrics.base import number
from scpslab.analysis.metrics.data_flows import DATA_FLOWS
from scpslab.analysis.run import RunCell
from scpslab.analysis.statistics import number_in
from scpslab.analysis.traces import Flow, flight_bytes, round_trips
from scpslab.analysis.viewpoints import bottleneck, bottleneck_bps, queue_probe
from scpslab.core import units
from scpslab.documents import key
from scpslab.plan.links import FLIPPED, LOSS_CAUSES, QUEUE

from scpslab.kinds.probes.tcp_info.plan import TcpInfo
from scpslab.kinds.probes.verdicts.plan import Verdicts

if TYPE_CHECKING:
    from scpslab.analysis.metrics.data_flows import Transfer

KILO, MEGA, MS_PER_S = 1e3, 1e6, 1e3
MOST_CELLS = 4  # that are drawn over each other without being asked for
NO_THRESHOLD = 4.0  # a threshold above this many largest windows is the stack's word for "none yet"
CAUSES = (*LOSS_CAUSES, FLIPPED)
WINDOW, ROUND_TRIP, DEPTH, LOST, ARRIVED, RATE = (
    "window (kB)",
    "round trip (ms)",
    "queue (kB)",
    "lost",
    "arrived (kB)",
    "rate (Mbit/s)",
)
PANELS = (WINDOW, ROUND_TRIP, DEPTH, LOST, ARRIVED, RATE)
CAUSE_HEIGHT = 0.22  # a row of marks in the panel of losses, as a share of a panel
ROW_LETTERS = 12  # of a row's direction and flow, beside the panel
MOST_RATIO = 4.0  # of the durations of cells that share an axis without being asked for
TRANSFER_TIME = "transfer_s"
NO_LOG = "Without a verdict log, only those losses are shown that a queue probe counted, whatever their flow."
# Whose packets a row of losses shows; the last where no capture tells.
OWN, OTHERS, ALL = "its own", "other flows", "all flows"
FLOWS = (OWN, OTHERS, ALL)
SHOWN_RATE = (
    0.3  # the link rate is drawn where some throughput comes up to this share of it: else it would flatten the curves
)

Series: TypeAlias = tuple[Floats, Floats]  # seconds since the transfer's start, values
NOTHING: Series = (np.zeros(0), np.zeros(0))


class OverTime(CellRecipe):
    """Panels without data are left out.

    Without `cells`, the first repeat of each point of the sweep is drawn: four at most, of comparable durations.
    """

    plot: Literal["over-time"]
    bin_s: BinWidth = BIN
    y: AxisStyle = key(AxisStyle(label="(each panel has its own unit)"), says="Not used: every panel has its own unit.")


@dataclass(frozen=True, order=True)
class _Row:
    """A kind of loss: `is_far` where it is not the drawn queue's direction. In the order in which the rows stand."""

    is_far: bool
    link: str
    direction: str
    flow: int  # place in FLOWS
    cause: int  # place in CAUSES, behind them for a cause that captures do not tell apart
    word: str

    @property
    def label(self) -> str:
        """Beside the panel: the cause, and below it direction and flow."""
        whose = {OWN: "", OTHERS: ": others", ALL: ": all"}[FLOWS[self.flow]]
        room = ROW_LETTERS - len(whose)
        place = self.direction if len(self.direction) <= room else f"{self.direction[: room - 1]}…"
        return f"{self.word}\n{place}{whose}"


@dataclass(frozen=True)
class _History:
    """What is known of one cell's transfer; a series without samples was not recorded."""

    label: str
    cwnd: Series
    ssthresh: Series
    flight: Series
    round_trip: Series
    is_round_trip_smoothed: bool
    depth: Series
    rate: Series
    link_bps: int | None
    hop: str
    losses: dict[_Row, Floats]
    loss_notes: tuple[str, ...]
    arrived: Series
    rate_at: str


def draw(recipe: OverTime, source: Source) -> tuple[Figure, str]:
    """The figure and its file name's stem. Time counts from the start of the transfer.

    Raises:
        UsageError: no such cell.
        NothingToDrawError: the run has neither captures nor records of a transfer.
    """
    cells, left_out = _cells(recipe, source)
    histories = [_history(cell, recipe.bin_s) for cell in cells]
    drawn = [panel for panel in PANELS if any(_has(history, panel) for history in histories)]
    if not drawn:
        raise NothingToDrawError(
            f"{cells[0].folder}: found no capture, no tcp_info and no queue probe of the transfer; expected one. "
            "Add one to the probes."
        )
    rows = sorted({row for history in histories for row in history.losses})
    heights = [CAUSE_HEIGHT * (len(rows) + 0.5) if panel == LOST else 1.0 for panel in drawn]
    with new_stack(words(recipe, cells, _caption(source, cells, histories, left_out, recipe)), heights) as (
        figure,
        panels,
    ):
        for panel, axes in zip(drawn, panels, strict=True):
            for index, history in enumerate(histories):
                if panel == LOST:
                    _draw_losses(axes, history, rows, index, len(histories))
                else:
                    _DRAWN[panel](axes, history, index, is_alone=len(histories) == 1)
            axes.set_ylabel(panel)
            if panel == LOST:
                axes.set_yticks(range(len(rows)), [row.label for row in rows], fontsize=8)
                axes.set_ylim(len(rows) - 0.4, -0.6)
                axes.grid(visible=False, axis="y")
            else:
                axes.set_ylim(0, 1.08 * max(axes.dataLim.y1, 1e-9))
        panels[-1].set_xlabel(recipe.x.label)
        panels[-1].set_xlim(recipe.x.min or 0, recipe.x.max)
    return figure, "-".join(
        [recipe.name, *(cell.folder.name for cell in cells)]
    ) if source.wanted_cells else recipe.name


def _cells(recipe: OverTime, source: Source) -> tuple[list[RunCell], int]:
    """The cells to draw, and how many points of the sweep are left out."""
    if recipe.cells or source.wanted_cells:
        return source.cells(recipe.cells), 0
    points: dict[tuple[tuple[str, Any], ...], RunCell] = {}
    for cell in source.run.cells:
        if cell.status == "completed":
            points.setdefault(tuple(cell.plan.cell.axes.items()), cell)
    if not points:
        return source.cells(()), 0
    near = _comparable(source, list(points.values()))
    # Spread over the sweep, its ends included, and not its first points only.
    chosen = np.unique(np.linspace(0, len(near) - 1, min(MOST_CELLS, len(near))).round().astype(int)).tolist()
    return [near[index] for index in chosen], len(points) - len(chosen)


def _comparable(source: Source, cells: list[RunCell]) -> list[RunCell]:
    """The cells that one time axis can show: as many as possible whose transfers last at most MOST_RATIO times the
    shortest of them.
    """
    rows = {row["cell"]: row for row in source.results.rows}
    times = {cell.id: number_in(rows.get(cell.id, {}), TRANSFER_TIME) for cell in cells}
    known = [time for time in times.values() if time is not None]
    if not known:
        return cells
    kept = max(([time for time in known if least <= time <= MOST_RATIO * least] for least in sorted(known)), key=len)
    return [cell for cell in cells if times[cell.id] in kept]


def _history(cell: RunCell, bin_s: float) -> _History:
    workload = transfer_of(cell)
    start_s = workload.start_ns / 1e9
    samples = _samples(cell, workload)
    sent, arrived = (_flow(cell, where) for where in ("source", "sink"))
    cwnd, ssthresh = _column(samples, "cwnd", start_s), _column(samples, "ssthresh", start_s)
    flight = _column(samples, "flight", start_s)
    round_trip = _column(samples, "srtt_ms", start_s)
    is_smoothed = bool(len(round_trip[0]))
    if sent is not None:
        t_s, under_way = flight_bytes(sent)
        flight = (t_s - start_s, under_way.astype(np.float64))
        if not is_smoothed:
            t_s, rtt_s = round_trips(sent)
            round_trip = (t_s - start_s, rtt_s * MS_PER_S)
    largest = max((float(series[1].max()) for series in (cwnd, flight) if len(series[1])), default=0.0)
    is_set = ssthresh[1] <= NO_THRESHOLD * largest
    seen = arrived if arrived is not None else sent
    hop, depth, losses, notes = _queue_and_losses(cell, workload, start_s)
    new = np.cumsum(new_bytes(seen)).astype(np.float64) / KILO if seen is not None else None
    return _History(
        label=label_of(cell),
        cwnd=cwnd,
        ssthresh=(ssthresh[0], np.where(is_set, ssthresh[1], np.nan)) if np.any(is_set) else NOTHING,
        flight=flight,
        round_trip=round_trip,
        is_round_trip_smoothed=is_smoothed,
        depth=depth,
        rate=_rate(cell, seen, start_s, bin_s) if seen is not None else NOTHING,
        link_bps=bottleneck_bps(cell.plan, workload),
        hop=hop,
        losses=losses,
        loss_notes=notes,
        arrived=(seen.t_s - start_s, new) if seen is not None and new is not None else NOTHING,
        rate_at="sink" if arrived is not None else "source",
    )


def _samples(cell: RunCell, workload: Transfer) -> list[dict[str, float]]:
    """The sender's own view, in bytes and milliseconds: an SCPS program's trace, else the tcp_info samples of the
    connection.
    """
    trace = cell.records(f"{workload.name}-{workload.from_}-trace")
    if trace:
        keys: dict[str, tuple[str, float]] = {
            name: (its, 1) for name, its in (("cwnd", "cwnd"), ("ssthresh", "ssthresh"), ("flight", "flight_size"))
        }
        return [_plain(line, {**keys, "srtt_ms": ("srtt_s", MS_PER_S)}) for line in trace]
    probe = next(
        (probe for probe in cell.plan.cell.probes if isinstance(probe, TcpInfo) and probe.node == workload.from_), None
    )
    connections: dict[str, list[dict[str, Any]]] = {}
    for line in cell.records(probe.name) if probe else ():
        if _is_of(workload, str(line.get("remote"))):
            connections.setdefault(str(line.get("local")), []).append(line)
    # iperf3 and the file protocols have another connection, for control.
    lines = max(connections.values(), key=lambda lines: number(lines[-1], "bytes_acked") or 0, default=[])
    found = []
    for line in lines:
        mss = number(line, "mss_bytes") or 0
        keys = {
            "cwnd": ("cwnd_segments", mss),
            "ssthresh": ("ssthresh_segments", mss),
            "flight": ("unacked", mss),
            "srtt_ms": ("srtt_ms", 1),
        }
        found.append(_plain(line, keys))
    return found


def _is_of(workload: Transfer, remote: str) -> bool:
    """Whether a connection of the sender with this other end may carry the transfer: a file's data connection has a
    port of its own.
    """
    address, _, port = remote.rpartition(":")
    return address == workload.to_ip and (
        port != str(workload.port) if not DATA_FLOWS[workload.kind].has_own_port else port == str(workload.port)
    )


def _plain(line: dict[str, Any], keys: dict[str, tuple[str, float]]) -> dict[str, float]:
    """The numbers of a line under our names, and its time."""
    names = {"t_s": ("t_s", 1.0), **keys}
    return {name: value * factor for name, (its, factor) in names.items() if (value := number(line, its)) is not None}


def _column(samples: list[dict[str, float]], name: str, start_s: float) -> Series:
    table = np.array(
        [(line["t_s"] - start_s, line[name]) for line in samples if name in line and "t_s" in line], dtype=np.float64
    ).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _flow(cell: RunCell, where: str) -> Flow | None:
    try:
        return flow_at(cell, where)
    except NothingToDrawError:
        return None


def _rate(cell: RunCell, flow: Flow, start_s: float, bin_s: float) -> Series:
    """User bits per second; bytes that were seen before do not count."""
    at, rate = rate_in_bins(
        cell, flow.t_s - start_s, new_bytes(flow), bin_s, float(flow.t_s.max(initial=start_s)) - start_s
    )
    return at + bin_s / 2, rate / MEGA


def new_bytes(flow: Flow) -> Ints:
    """For each data packet, its bytes that no earlier packet had: int64[n].

    At the sink a retransmission that fills a hole is new.
    """
    edges = np.unique(np.concatenate([flow.seq, flow.end]))
    width, is_seen = np.diff(edges), np.zeros(max(len(edges) - 1, 0), dtype=np.bool_)
    found = np.zeros(len(flow.seq), dtype=np.int64)
    bounds = zip(np.searchsorted(edges, flow.seq).tolist(), np.searchsorted(edges, flow.end).tolist(), strict=True)
    for index, (low, high) in enumerate(bounds):
        found[index] = int(width[low:high][~is_seen[low:high]].sum())
        is_seen[low:high] = True
    return found


def _queue_and_losses(
    cell: RunCell, workload: Transfer, start_s: float
) -> tuple[str, Series, dict[_Row, Floats], tuple[str, ...]]:
    """The slowest hop's direction, the depth of the queue before it, times of losses, and what a reader must know of
    these.
    """
    hop = bottleneck(cell.plan, workload)
    drawn = (hop.link.name, hop.direction.name) if hop else ("", "")
    where = f"{drawn[0]}, {drawn[1]} direction" if hop else ""
    probe = queue_probe(cell.plan, hop) if hop else None
    lines = cell.records(probe.name) if probe else []
    table = np.array(
        [[number(line, name) or 0.0 for name in ("t_s", "bytes", "drops")] for line in lines], dtype=np.float64
    ).reshape(-1, 3)
    depth = (table[:, 0] - start_s, table[:, 1])
    if any(isinstance(probe, Verdicts) for probe in cell.plan.cell.probes):
        found = find_losses(cell, "")
        ends = _ends(cell)
        times: dict[_Row, list[float]] = {}
        for lost in found.lost:
            times.setdefault(_row(lost.cause, (lost.link, lost.direction), _flow_of(lost, ends), drawn), []).append(
                lost.t_s - start_s
            )
        return where, depth, {row: np.array(t_s) for row, t_s in times.items()}, found.notes
    dropped = np.flatnonzero(np.diff(table[:, 2]) > 0) + 1
    losses = {_row(QUEUE, drawn, ALL, drawn): depth[0][dropped]} if len(dropped) else {}
    return where, depth, losses, (NO_LOG,)


def _row(cause: str, place: tuple[str, str], flow: str, drawn: tuple[str, str]) -> _Row:
    return _Row(
        place != drawn, *place, FLOWS.index(flow), CAUSES.index(cause) if cause in CAUSES else len(CAUSES), cause
    )


def _ends(cell: RunCell) -> set[str]:
    """Both ends of the transfer's connection, as `Lost` writes them; none where no capture has it."""
    for at in ("source", "sink"):
        try:
            found = connection_at(cell, at)
        except NothingToDrawError:
            continue
        return {f"{found.client_ip}:{found.client_port}", f"{found.server_ip}:{found.server_port}"}
    return set()


def _flow_of(lost: Lost, ends: set[str]) -> str:
    if not lost.capture or not ends or (lost.payload_bytes is None and lost.protocol != "icmp"):
        return ALL
    return OWN if {lost.source, lost.destination} == ends else OTHERS


def _has(history: _History, panel: str) -> bool:
    if panel == LOST:
        return bool(history.losses)
    series = {
        WINDOW: (history.cwnd, history.flight),
        ROUND_TRIP: (history.round_trip,),
        DEPTH: (history.depth,),
        ARRIVED: (history.arrived,),
        RATE: (history.rate,),
    }[panel]
    return any(len(t_s) for t_s, _ in series)


def _draw_windows(axes: Axes, history: _History, index: int, *, is_alone: bool) -> None:
    colour = COLOURS[index % len(COLOURS)]

    def label(name: str, t_s: Floats) -> str | None:
        return name if is_alone and len(t_s) else None

    t_s, flight = history.flight
    axes.plot(
        t_s,
        flight / KILO,
        color=COLOURS[1] if is_alone else colour,
        linewidth=0.7,
        alpha=0.75,
        label=label("flight", t_s),
    )
    t_s, cwnd = history.cwnd
    axes.plot(
        t_s,
        cwnd / KILO,
        color=colour,
        linewidth=1.7,
        linestyle=_style(index),
        label=label("cwnd", t_s) if is_alone else history.label,
    )
    t_s, ssthresh = history.ssthresh
    axes.plot(
        t_s,
        ssthresh / KILO,
        color=COLOURS[2] if is_alone else colour,
        linewidth=1.2,
        linestyle=":",
        label=label("ssthresh", t_s),
    )


def _draw_round_trip(axes: Axes, history: _History, index: int, *, is_alone: bool) -> None:
    colour, label = COLOURS[index % len(COLOURS)], None if is_alone else history.label
    if history.is_round_trip_smoothed:
        axes.plot(*history.round_trip, color=colour, linestyle=_style(index), linewidth=1.4, label=label)
    else:
        axes.plot(*history.round_trip, color=colour, linestyle="none", marker=".", markersize=2.5)


def _draw_queue(axes: Axes, history: _History, index: int, *, is_alone: bool) -> None:
    t_s, depth = history.depth
    style: dict[str, Any] = {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": _style(index),
        "linewidth": 1.1,
        "label": None if is_alone else history.label,
    }
    axes.plot(t_s, depth / KILO, drawstyle="steps-post", **style)


def _draw_losses(axes: Axes, history: _History, rows: list[_Row], index: int, cells: int) -> None:
    """In each row the cells stand below each other."""
    for row, times in history.losses.items():
        height = np.full(len(times), rows.index(row) + (index - (cells - 1) / 2) * 0.7 / cells)
        size = 9.0 if cells == 1 else 5.0
        axes.plot(
            times,
            height,
            linestyle="none",
            marker="|",
            markersize=size,
            markeredgewidth=1.3,
            color=COLOURS[index % len(COLOURS)],
        )


def _draw_arrived(axes: Axes, history: _History, index: int, *, is_alone: bool) -> None:
    style: dict[str, Any] = {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": _style(index),
        "label": None if is_alone else history.label,
    }
    axes.plot(*history.arrived, drawstyle="steps-post", linewidth=1.4, **style)


def _draw_rate(axes: Axes, history: _History, index: int, *, is_alone: bool) -> None:
    axes.plot(
        *history.rate,
        color=COLOURS[index % len(COLOURS)],
        linestyle=_style(index),
        linewidth=1.4,
        label=None if is_alone else history.label,
    )
    if history.link_bps and len(history.rate[1]) and history.rate[1].max() >= SHOWN_RATE * history.link_bps / MEGA:
        label = f"link rate {units.text('rate', history.link_bps)}"
        if label not in axes.get_legend_handles_labels()[1]:
            axes.axhline(history.link_bps / MEGA, color=MUTED, linewidth=1, linestyle=(0, (6, 3)), label=label)


_DRAWN = {
    WINDOW: _draw_windows,
    ROUND_TRIP: _draw_round_trip,
    DEPTH: _draw_queue,
    ARRIVED: _draw_arrived,
    RATE: _draw_rate,
}


def _style(index: int) -> str:
    return LINE_STYLES[index % len(LINE_STYLES)]


def _caption(source: Source, cells: list[RunCell], histories: list[_History], left_out: int, recipe: OverTime) -> str:
    """What was drawn and where it was measured."""
    shown = f"{label_of(cells[0])}, repeat {cells[0].plan.cell.repeat}" if len(cells) == 1 else f"{len(cells)} cells"
    places = " and ".join(sorted({history.rate_at for history in histories if len(history.rate[0])}))
    sentences = [f"Run {source.run_dir.name}, {shown}."]
    if places:
        sentences.append(
            f"Arrived and rate: user bytes seen for the first time at the {places}; rate in bins of {recipe.bin_s:g} s."
        )
    if len(cells) > 1:
        sentences.append(
            "Thin: flight."
            if not any(len(history.ssthresh[0]) for history in histories)
            else "Thin: flight; dotted: ssthresh."
        )
    if any(len(history.round_trip[0]) and not history.is_round_trip_smoothed for history in histories):
        sentences.append("Round trips: single samples from the capture at the source.")
    rates = sorted({history.link_bps for history in histories if history.link_bps})
    if rates:
        sentences.append(f"Link rate: {', '.join(units.text('rate', rate) for rate in rates)}.")
    hops = sorted({history.hop for history in histories if len(history.depth[0])})
    if hops:
        sentences.append(f"Queue: before {' and '.join(hops)}.")
    sentences += _on_losses(histories)
    if left_out:
        sentences.append(
            f"{left_out} other points of the sweep are not drawn (four at most, whose transfers last up to "
            f"{MOST_RATIO:g} times as long as the shortest):"
            " choose cells with --cell."
        )
    return " ".join(sentences)


def _on_losses(histories: list[_History]) -> list[str]:
    """How many packets were lost where, and of which flow, if any is drawn; and what a reader must know of them."""
    lost: Counter[_Row] = Counter()
    for history in histories:
        lost.update({row: len(times) for row, times in history.losses.items()})
    places: dict[tuple[str, str, int], list[str]] = {}
    for row in sorted(lost):
        places.setdefault((row.link, row.direction, row.flow), []).append(f"{lost[row]} {row.word}")
    said = [
        f"on {link}, {direction} direction, {FLOWS[flow]}: {', '.join(counts)}"
        for (link, direction, flow), counts in places.items()
    ]
    notes = dict.fromkeys(
        note for history in histories for note in history.loss_notes if len(histories) == 1 or note == NO_LOG
    )
    return [f"Lost {'; '.join(said)}.", *notes] if said else []
