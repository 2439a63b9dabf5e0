"""Processor time of everything that happens on one core: programs, packets, timers.

A loop of low real-time priority reads the clock of the core without a pause; each gap in its readings is time that the
core spent on something else. Processor time of processes and control groups is no such measure: what a timer sends
while no program runs is on nobody's account. What is measured runs on the same core with a higher priority, so that
nothing else of the machine runs there meanwhile.
"""

from __future__ import annotations

import ctypes
import mmap
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Self

LOOP_PRIORITY, PROGRAM_PRIORITY = 1, 2
# Linux takes a core from programs of such a priority after 0.95 of a second: what is watched is shorter, and has a
# pause before.
PAUSE_S = 1
IDLE_S = 0.1
LONGEST_S = 20
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass
class Watched:
    """Seconds that the loop was there for, and those of them that the core spent on something else."""

    wall_s: float = 0
    away_s: float = 0


class Loop:
    """Reads the clock of a core while nothing else wants the core."""

    def __init__(self, core: int) -> None:
        self._stop = mmap.mmap(-1, 1)
        self._here, there = multiprocessing.get_context("fork").Pipe()
        self._process = multiprocessing.get_context("fork").Process(
            target=_read_the_clock, args=(core, there, self._stop), daemon=True
        )

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop[0] = 1
        self._process.kill()
        self._process.join()

    @contextmanager
    def watched(self) -> Iterator[Watched]:
        """What the core spends on something else than the loop during the block."""
        found = Watched()
        time.sleep(PAUSE_S)
        self._stop[0] = 0
        self._here.send(None)
        self._here.recv()
        try:
            yield found
        finally:
            self._stop[0] = 1
        found.wall_s, found.away_s = self._here.recv()

    def idle_share(self) -> float:
        """The share of its time that the core spends on other things when nothing runs."""
        with self.watched() as watched:
            time.sleep(IDLE_S)
        return watched.away_s / watched.wall_s


def _read_the_clock(core: int, asked: Connection, stop: mmap.mmap) -> None:
    # However the other process ends, this one does.
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    clock = time.perf_counter_ns
    os.sched_setaffinity(0, {core})
    while True:
        asked.recv()
        # Only while it is asked: nothing else of the machine runs here meanwhile.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(LOOP_PRIORITY))
        steps = sorted(-clock() + clock() for _ in range(1000))
        # One pass of the loop below is some three readings long; what takes longer than ten was something else.
        pass_ns, longest_ns = 3 * steps[500], 10 * steps[500]
        asked.send(None)
        began = last = clock()
        until = began + LONGEST_S * 10**9
        away = 0
        while not stop[0] and last < until:
            now = clock()
            if now - last > longest_ns:
                away += now - last - pass_ns
            last = now
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        asked.send(((last - began) / 1e9, away / 1e9))
