"""Progress for people: cells done, virtual seconds per wall second, time left. In a file or pipe: one line per cell.

A campaign has one row for all of its scenarios. It shows the virtual hours done, and the virtual hours per minute of
wall time.
"""

import os
import time
from collections.abc import Callable

from rich import progress
from rich.console import Console

from scpslab.cli.tables import say_to
from scpslab.engine import INTERACTIVE
from scpslab.running import events
from scpslab.scenario.planning.estimate import LONG_S, Expected, forecast, wall_s


class ConsoleProgress:
    """A listener that shows the progress of runs.

    In a campaign it names the scenario and shows the pace in hours per minute.

    `jobs`: how many cells run at a time (None: one per core); `now`: a clock, in seconds; `is_here`: whether cells run
    on this machine, whose pace is known.
    """

    def __init__(
        self,
        console: Console,
        jobs: int | None = None,
        now: Callable[[], float] = time.monotonic,
        *,
        is_here: bool = True,
    ) -> None:
        self.is_here = is_here
        self.console, self.say, self.now = console, say_to(console), now
        self.jobs = jobs or len(os.sched_getaffinity(0))
        self.scenarios: tuple[str, ...] = ()
        # What is expected of the cells that have neither begun nor ended, until the first begins.
        self.waiting: dict[str, Expected] = {}
        self.has_forecast, self.is_virtual = False, True
        self._begin(0)

    def __call__(self, event: events.Event) -> None:
        """Shows one event."""
        match event:
            case events.Note():
                self.say(event.text)
            case events.CampaignStarted():
                self.scenarios = event.scenarios
                self._begin(event.cells)
            case events.RunStarted():
                self._begin_run(event)
            case events.CellStarted():
                self._forecast()
            case events.CellProgress():
                self._name(event)
                self._cell_progress(event)
            case events.CellDone():
                self._name(event)
                self.tally(event)
                self.waiting.pop(event.cell, None)
                self._cell_done(event)
            case events.CampaignDone() | events.CampaignInterrupted() | events.CampaignFailed():
                self._end(event)
                self.scenarios = ()
            case events.RunDone() | events.RunInterrupted() | events.RunFailed() if not self.scenarios:
                self._end(event)

    def _begin_run(self, event: events.RunStarted) -> None:
        # Where time is real, it has no pace.
        self.is_virtual = event.engine not in INTERACTIVE
        if self.scenarios:
            return
        self.waiting, self.has_forecast = dict(event.expected), False
        self._begin(len(event.cells))

    def _name(self, event: events.CellProgress | events.CellDone) -> None:
        """In a campaign, the scenario of a cell and its number among all."""
        if event.scenario in self.scenarios:
            number = self.scenarios.index(event.scenario) + 1
            self.scenario = f"{number} of {len(self.scenarios)} {event.scenario}"

    def _begin(self, total: int) -> None:
        self.total, self.tally, self.scenario, self.started = total, events.Tally(), "", self.now()
        self.bar: progress.Progress | None = None
        self.acked: dict[str, int] = {}
        if total and self.console.is_terminal:
            self.bar = progress.Progress(
                progress.BarColumn(bar_width=30),
                progress.MofNCompleteColumn(),
                progress.TextColumn("cells"),
                progress.TimeElapsedColumn(),
                progress.TextColumn("left"),
                progress.TimeRemainingColumn(),
                progress.TextColumn("{task.description}", markup=False),
                console=self.console,
            )
            self.task = self.bar.add_task("", total=total)
            self.bar.start()

    def _forecast(self) -> None:
        """Says how long a long run takes, once, before its first cell that has no result yet."""
        if not (self.has_forecast or self.scenarios) and self.is_here:
            self.has_forecast = True
            if wall_s(self.waiting.values(), self.jobs) >= LONG_S:
                text = forecast(self.waiting.values(), self.jobs, in_virtual_time=self.is_virtual)
                self.say(f"{text} (a guess by the plans)")

    def _end(self, event: events.Event) -> None:
        """Shows what was done, or where what is finished is kept."""
        if self.bar:
            self.bar.stop()
        if isinstance(event, events.RunDone | events.CampaignDone):
            self.scenario = ""
            self.console.print(self._summary(), highlight=False)
        if isinstance(event, events.RunInterrupted | events.CampaignInterrupted):
            text = f"interrupted: {self.tally.done} of {self.total} cells are finished, and kept in {event.folder}"
            self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def _cell_progress(self, event: events.CellProgress) -> None:
        """Shows how far a cell is: its time, and the most that a connection of it has had acknowledged."""
        if self.bar is None:
            return
        acked = event.sample.values.get("bytes_acked")
        if isinstance(acked, int):
            self.acked[event.cell] = max(acked, self.acked.get(event.cell, 0))
        sent = f", {self.acked[event.cell] / 1e6:.1f} MB acknowledged" if event.cell in self.acked else ""
        now = f"{event.cell} at {event.sample.t_s:.0f} s{sent}"
        pace = self._pace() if self.tally.done else self.scenario
        self.bar.update(self.task, description="; ".join(filter(None, (pace, now))))

    def _cell_done(self, event: events.CellDone) -> None:
        status = event.status
        if self.bar:
            self.bar.update(self.task, advance=1, description=self._pace())
        else:
            unit = "virtual s" if self.is_virtual else "s"
            origin = "from the cache" if event.cached else f"{status.virtual_s or 0.0:.1f} {unit}"
            place = f"{self.scenario} {event.cell}" if self.scenario else event.cell
            line = f"[{self.tally.done}/{self.total}] {place}: {status.status}, {origin}"
            self.say(line)
        if status.status in ("failed", "unsupported"):
            reason = f"cell {event.cell} {status.status}: {status.reason}"
            self.console.print(reason, style="red", highlight=False, soft_wrap=True)

    def _pace(self) -> str:
        """Virtual seconds per wall second so far; nothing where time is real."""
        if not self.is_virtual:
            return self.scenario
        wall_s, virtual_s = max(self.now() - self.started, 1e-9), self.tally.virtual_s
        if self.scenario:
            return f"{virtual_s / 3600:.1f} virtual h, {virtual_s / 60 / wall_s:.2f} h per minute; {self.scenario}"
        return f"{virtual_s / wall_s:.0f} virtual s per s" if virtual_s else "from the cache"

    def _summary(self) -> str:
        """The closing line, for all scenarios together."""
        parts = [f"{self.tally.done} cell{'' if self.tally.done == 1 else 's'} in {self.now() - self.started:.1f} s"]
        if self.tally.cached:
            parts.append(f"{self.tally.cached} of them from the cache")
        if self.tally.virtual_s and self.is_virtual:
            parts.append(f"{self.tally.virtual_s:.0f} virtual s, {self._pace()}")
        return "; ".join(parts)
