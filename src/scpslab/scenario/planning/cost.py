"""What a run or campaign needs before it runs: seconds of a core, memory, and what more cores change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self

from scpslab.plan import Plan
from scpslab.scenario.planning.estimate import expected, least_virtual_s

# A guest and the template that it is forked from, for each core; and the program around them.
GUESTS_PER_CORE, PROGRAM_MIB = 2, 300


@dataclass(frozen=True)
class Cost:
    """Cells; seconds of a core for all of them, and for the longest; the least virtual seconds; and the memory of a core's guests in MiB."""

    cells: int
    busy_s: float
    longest_s: float
    virtual_s: float
    guest_mib: int

    @classmethod
    def of(cls, plans: Iterable[Plan], wall_s: Callable[[Plan], float] = lambda plan: expected(plan).wall_s) -> Self:
        """The cost of plans, at least one, one after the other. `wall_s`: the seconds of a core that a plan takes."""
        cells, busy_s, longest_s, virtual_s, guest_mib = 0, 0.0, 0.0, 0.0, 0
        for plan in plans:
            took_s = wall_s(plan)
            cells, busy_s, longest_s, virtual_s = cells + 1, busy_s + took_s, max(longest_s, took_s), virtual_s + least_virtual_s(plan)
            guest_mib = max(guest_mib, plan.network.memory_mib)
        return cls(cells, busy_s, longest_s, virtual_s, guest_mib)

    def __add__(self, other: Cost) -> Cost:
        """Both, one after the other."""
        return Cost(
            self.cells + other.cells,
            self.busy_s + other.busy_s,
            max(self.longest_s, other.longest_s),
            self.virtual_s + other.virtual_s,
            max(self.guest_mib, other.guest_mib),
        )

    def wall_s(self, cores: int) -> float:
        """Seconds on so many cores: no cell is faster than itself."""
        return max(self.busy_s / cores, self.longest_s)

    def memory_mib(self, cores: int) -> int:
        """Memory for cells on so many cores of one machine, at most; guests use what they touch."""
        return PROGRAM_MIB + cores * GUESTS_PER_CORE * self.guest_mib
