"""How long a run still takes: what was expected of its cells, corrected by how long those that have ended really
took.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from scpslab.scenario.planning.estimate import Expected

MINUTE_S, HOUR_S = 60, 3600
# A shorter run needs no forecast.
LONG_S = 60


class Remaining:
    """The cells of a run that have no result yet.

    `now` is a clock in seconds; `jobs` is how many cells run at a time.
    """

    def __init__(self, expected: Mapping[str, Expected], jobs: int, now: Callable[[], float]) -> None:
        self.expected, self.jobs, self.now = dict(expected), max(1, jobs), now
        self.waiting = dict(expected)
        self.running: dict[str, float] = {}
        self._took_s = self._expected_s = 0.0

    def started(self, cell: str) -> None:
        """A cell runs from now on."""
        self.running[cell] = self.now()
        self.waiting.pop(cell, None)

    def done(self, cell: str) -> None:
        """A cell has its result; one that was never started was in the cache, and says nothing of the pace."""
        self.waiting.pop(cell, None)
        began = self.running.pop(cell, None)
        if began is not None and cell in self.expected:
            self._took_s += self.now() - began
            self._expected_s += self.expected[cell].wall_s

    @property
    def is_measured(self) -> bool:
        """Whether a cell has ended, so that the pace of this machine and these cells is known."""
        return self._expected_s > 0

    @property
    def correction(self) -> float:
        """How much longer cells take than was expected."""
        return self._took_s / self._expected_s if self._expected_s else 1.0

    def seconds(self) -> float | None:
        """Seconds to the end; None if nothing is known, or if only cells are left that should have ended."""
        left = [self.correction * cell.wall_s for cell in self.waiting.values()]
        left += [
            max(0.0, self.correction * self.expected[cell].wall_s - (self.now() - began))
            for cell, began in self.running.items()
            if cell in self.expected
        ]
        if not any(left):
            return None
        # Cells run side by side, but none is faster than itself.
        return max(sum(left) / min(self.jobs, len(left)), *left)

    def forecast(self, *, in_virtual_time: bool = True) -> str:
        """A sentence before the first cell runs."""
        return forecast(self.waiting.values(), self.jobs, in_virtual_time=in_virtual_time)


def forecast(cells: Iterable[Expected], jobs: int, *, in_virtual_time: bool = True) -> str:
    """How long cells take, and how fast their virtual time passes, in words."""
    known = list(cells)
    virtual_s, busy_s = sum(cell.virtual_s for cell in known), sum(cell.wall_s for cell in known)
    at_once = min(jobs, len(known)) or 1
    wall_s = max([busy_s / at_once, *(cell.wall_s for cell in known)])
    pace = virtual_s / wall_s if wall_s else 0.0
    number = "1 cell" if len(known) == 1 else f"{len(known)} cells"
    side_by_side = f", {at_once} at a time" if at_once > 1 else ""
    text = f"about {in_words(wall_s)} for {number}{side_by_side}"
    return (
        f"{text}: {in_words(virtual_s)} of virtual time at least, some {pace:.2g} virtual s per s"
        if in_virtual_time
        else text
    )


def in_words(seconds: float) -> str:
    """A time as a person says it: 40 s, 12 min, 3.5 h."""
    if seconds < 2 * MINUTE_S:
        return f"{seconds:.0f} s"
    return f"{seconds / MINUTE_S:.0f} min" if seconds < 2 * HOUR_S else f"{seconds / HOUR_S:.1f} h"
