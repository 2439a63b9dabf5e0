"""Progress for people: cells done, virtual seconds per wall second, time left. In a file or pipe: one line a cell.

A campaign has one row for all of its scenarios, with the virtual hours done and how many a wall minute brings.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class RunProgress:
    """Shows how a run goes; a context manager. `scenario` is named in a campaign's row, and the pace is then in hours a minute."""

    def __init__(self, console: Console, total: int) -> None:
        self.console, self.total, self.scenario = console, total, ""
        self.done, self.cached, self.virtual_s, self.started = 0, 0, 0.0, time.monotonic()
        self.bar: Progress | None = None
        if console.is_terminal:
            self.bar = Progress(
                SpinnerColumn(),
                BarColumn(bar_width=30),
                MofNCompleteColumn(),
                TextColumn("cells"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                TextColumn("{task.description}", markup=False),
                console=console,
            )
            self.task = self.bar.add_task("", total=total)

    def __enter__(self) -> Self:
        """Starts showing."""
        if self.bar:
            self.bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stops showing."""
        if self.bar:
            self.bar.stop()

    def cell_done(self, cell_id: str, status: dict[str, object], cached: bool) -> None:
        """One more cell is over."""
        self.done += 1
        self.cached += cached
        virtual_s = float(status.get("virtual_s") or 0.0)  # type: ignore[arg-type]
        if not cached:
            self.virtual_s += virtual_s
        if self.bar:
            self.bar.update(self.task, advance=1, description=self.pace())
        else:
            origin = "from the cache" if cached else f"{virtual_s:.1f} virtual s"
            place = f"{self.scenario} {cell_id}" if self.scenario else cell_id
            self.console.print(f"[{self.done}/{self.total}] {place}: {status['status']}, {origin}", highlight=False, soft_wrap=True)
        if status["status"] in ("failed", "unsupported"):
            self.console.print(f"cell {cell_id} {status['status']}: {status['reason']}", style="red", highlight=False, soft_wrap=True)

    def pace(self) -> str:
        """Virtual seconds per wall second so far."""
        wall_s = max(time.monotonic() - self.started, 1e-9)
        if self.scenario:
            return f"{self.virtual_s / 3600:.1f} virtual h, {self.virtual_s / 60 / wall_s:.2f} h per minute; {self.scenario}"
        return f"{self.virtual_s / wall_s:.0f} virtual s per s" if self.virtual_s else "from the cache"

    def summary(self) -> str:
        """The closing line."""
        wall_s = time.monotonic() - self.started
        parts = [f"{self.done} cells in {wall_s:.1f} s"]
        if self.cached:
            parts.append(f"{self.cached} of them from the cache")
        if self.virtual_s:
            parts.append(f"{self.virtual_s:.0f} virtual seconds, {self.pace()}")
        return "; ".join(parts)
