"""What the benches share: cells to run, and processor and wall time of what runs meanwhile.

A fork's processes are its own children, and some are killed: a program that takes in whatever is orphaned has the
system count all of it.
"""

import ctypes
import os
import resource
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console

from scpslab import scenario
from scpslab.engine import CellRun, Engine
from scpslab.plan import Plan
from scpslab.scenario import planning

PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Cost:
    """Seconds, and the bytes of the template's memory where there is one."""

    processor_s: float
    wall_s: float
    memory_bytes: int = 0


class Meter:
    """`cost` after the block is what the block and all processes that it left have taken; wall time is the block's."""

    cost: Cost

    def __enter__(self) -> Self:
        self._before_s, self._started_s = _used_s(), time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        wall_s = time.monotonic() - self._started_s
        with suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
        self.cost = Cost(_used_s() - self._before_s, wall_s)


def plan_of(name: str, *overrides: str) -> Plan:
    """The plan of a scenario's first cell with overrides."""
    return planning.plan(scenario.cells(scenario.load(name, list(overrides)))[0])


def completed(engine: Engine, cell: CellRun) -> None:
    """Runs a cell, which has to complete."""
    status = engine.run(cell)
    if status.status != "completed":
        found = f"found a cell that {status.status}: {status.reason}"
        sys.exit(f"error: {cell.plan.cell.id}: {found}; expected it to complete.")


def console() -> Console:
    """Where tables go, wide enough for theirs wherever it ends."""
    return Console(width=150)


def take_in_orphans() -> None:
    """This process becomes the parent of whatever below it loses its own."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _used_s() -> float:
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
