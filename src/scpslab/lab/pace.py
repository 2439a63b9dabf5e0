"""Whether real time was kept: a tick on the lab's loop every few milliseconds, and how late each came.

Where time is virtual nothing can be late, and plans ask for no ticks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scpslab.lab.cell import Cell


class Pace:
    """Ticks from the epoch to `stop`, if the plan's limits ask for them (`tick_ns`)."""

    def __init__(self, cell: Cell, limits: dict[str, Any]) -> None:
        self.cell, self.limits = cell, limits
        self.ticks, self.late, self.worst_ns = 0, 0, 0
        self.stopped = "tick_ns" not in limits

    def start(self) -> None:
        """Takes the first tick at the epoch."""
        if not self.stopped:
            self.due_ns = self.cell.epoch.realtime_ns
            self.cell.loop.at(self.due_ns, self._tick)

    def _tick(self) -> None:
        if self.stopped:
            return
        lateness_ns = self.cell.now_ns() - self.due_ns
        self.ticks += 1
        self.late += lateness_ns > self.limits["late_ns"]
        self.worst_ns = max(self.worst_ns, lateness_ns)
        # Ticks that could not come are counted too: they come at once, each as late as it is.
        self.due_ns += self.limits["tick_ns"]
        self.cell.loop.at(self.due_ns, self._tick)

    def stop(self) -> str:
        """Ends the ticks, writes what was seen to the lab's log; "" when time was kept, else why the cell's numbers are worthless."""
        if "tick_ns" not in self.limits:
            return ""
        self.stopped = True
        self.cell.log.write(event="pace", ticks=self.ticks, late=self.late, worst_s=self.worst_ns / 1e9)
        if self.late <= self.limits["late_share"] * self.ticks:
            return ""
        share, most, late_ms = 100 * self.late / self.ticks, 100 * self.limits["late_share"], self.limits["late_ns"] / 1e6
        found = f"{share:.1f} % of the lab's ticks came more than {late_ms:g} ms late"
        return f"real time was not kept: found {found}; expected at most {most:g} %. Lower the rates, or what else this machine does"
