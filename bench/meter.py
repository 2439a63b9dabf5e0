"""Processor and wall time of what runs meanwhile.

A fork's processes are its own children, and some are killed: a program that takes in whatever is orphaned has the
system count all of it.
"""

from __future__ import annotations

import ctypes
import os
import resource
import time
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Cost:
    """Seconds, and the bytes of the template's memory where there is one."""

    processor_s: float
    wall_s: float
    memory_bytes: int = 0


class Meter:
    """`cost` after the block is what the block and all processes that it left have taken."""

    cost: Cost

    def __enter__(self) -> Self:
        self._before_s, self._started_s = _used_s(), time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
        self.cost = Cost(_used_s() - self._before_s, time.monotonic() - self._started_s)


def take_in_orphans() -> None:
    """This process becomes the parent of whatever below it loses its own."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _used_s() -> float:
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
