"""Checks that the lab kept real time: takes a tick on the lab's loop every few milliseconds, and records how late each
one comes.

In virtual time nothing can be late, and plans ask for no ticks.
"""

from __future__ import annotations

from typing import Self

from scpslab.lab.context import Context
from scpslab.plan.cell import Limits


class Pace:
    """Ticks from the epoch to `stop`."""

    def __init__(self, context: Context, tick_ns: int, late_ns: int, late_share: float) -> None:
        self.context, self.tick_ns, self.late_ns, self.late_share = context, tick_ns, late_ns, late_share
        self.ticks, self.late, self.worst_ns = 0, 0, 0
        self.stopped, self.due_ns = False, context.epoch.realtime_ns

    @classmethod
    def asked_for(cls, context: Context, limits: Limits) -> Self | None:
        """The ticks for a plan's limits; None if the limits ask for none."""
        if limits.tick_ns is None or limits.late_ns is None or limits.late_share is None:
            return None
        return cls(context, limits.tick_ns, limits.late_ns, limits.late_share)

    def start(self) -> None:
        """Takes the first tick at the epoch."""
        self.context.loop.at(self.due_ns, self._tick)

    def _tick(self) -> None:
        if self.stopped:
            return
        lateness_ns = self.context.now_ns() - self.due_ns
        self.ticks += 1
        self.late += lateness_ns > self.late_ns
        self.worst_ns = max(self.worst_ns, lateness_ns)
        # Ticks that could not come in time count too: they come together, each with its own lateness.
        self.due_ns += self.tick_ns
        self.context.loop.at(self.due_ns, self._tick)

    def stop(self) -> str:
        """Ends the ticks and writes their lateness to the lab's log.

        Returns "" if the lab kept real time, else the reason of the failure.
        """
        self.stopped = True
        self.context.log.write(event="pace", ticks=self.ticks, late=self.late, worst_s=self.worst_ns / 1e9)
        if self.late <= self.late_share * self.ticks:
            return ""
        share, most, late_ms = 100 * self.late / self.ticks, 100 * self.late_share, self.late_ns / 1e6
        found = f"{share:.1f} % of the lab's ticks came more than {late_ms:g} ms late"
        return (
            f"real time was not kept: found {found}; expected at most {most:g} %. "
            "Lower the rates, stop other programs on this machine, "
            "give the lab priority (as root: chrt -f 10 scpslab run …), or allow more (limits.lateness)"
        )
