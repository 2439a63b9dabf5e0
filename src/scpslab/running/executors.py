"""Executors carry out the cells of a run: their interface, and the one that runs cells on this machine."""

import json
import os
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

from scpslab.engine import CellRun, CellSample, Engine
from scpslab.engine.base import Interrupted
from scpslab.lab.records import Status
from scpslab.plan import Plan, schema
from scpslab.scenario.planning import expected

# An interrupt is answered at once.
LOOK_S = 0.2
# A cell's status, and the seconds that it took.
Timed = Future[tuple[Status, float]]
# Cells that were started and have not been reported as ended, with their cores (None: any).
Pending = dict[Timed, tuple[str, int | None]]


class Reports(Protocol):
    """Receives an executor's reports about cells, in the thread that called the executor, one after the other."""

    def started(self, cell_id: str) -> None:
        """A cell is about to be carried out."""

    def progress(self, cell_id: str, sample: CellSample) -> None:
        """A cell that was started and has not been reported as ended said what it does."""

    def complete(self, folder: Path) -> None:
        """A cell's folder is complete. Unlike the others it is called in the thread that waited for the cell, before
        `ended`.
        """

    def ended(self, cell_id: str, status: Status, took_s: float | None = None) -> None:
        """A cell has ended, and its folder is complete.

        The report may come again for a cell whose first report was interrupted.

        `took_s`: how long it took on the wall clock, if the executor knows it.
        """

    def note(self, text: str) -> None:
        """Something that a person should know."""


class Executor(ABC):
    """Carries out cells.

    `jobs`: the number of cells at a time (None: the executor decides).
    """

    def __init__(self, jobs: int | None) -> None:
        self.jobs = jobs

    def check(self, engine: Engine) -> None:  # noqa: B027  # most take every engine
        """Refuses an engine that it cannot use, before that is prepared.

        Raises:
            UsageError: it does not take this one.
        """

    @abstractmethod
    def run(self, engine: Engine, cells: Mapping[str, CellRun], reports: Reports) -> None:
        """Carries out cells with a prepared engine, each into its folder, and reports them.

        If the user interrupts, or a cell raises, the executor ends the cells that run, reports those that had ended by
        then, and raises.

        Raises:
            KeyboardInterrupt: the user ended it.
        """


def _report(pending: Pending, done: Iterable[Timed], reports: Reports) -> list[int | None]:
    """Reports ended cells; returns their cores.

    If one of them raised an exception, raises it after reporting the others.
    """
    cores = []
    for future in sorted(done, key=lambda future: future.exception() is not None):
        cell_id, core = pending[future]
        try:
            reports.ended(cell_id, *future.result())
        except Interrupted as interrupted:
            raise KeyboardInterrupt from interrupted
        del pending[future]
        cores.append(core)
    return cores


def _timed(engine: Engine, cell: CellRun, reports: Reports) -> tuple[Status, float]:
    """A cell's status, and the seconds that it took."""
    began = time.monotonic()
    status, took_s = engine.run(cell), time.monotonic() - began
    reports.complete(cell.folder)
    return status, took_s


def _put(samples: SimpleQueue[tuple[str, CellSample]], cell_id: str, sample: CellSample) -> None:
    samples.put((cell_id, sample))


class LocalExecutor(Executor):
    """Threads, each waiting for the engine.

    A cell starts only when the result before it is kept, so that no result is ever lost.
    """

    def run(self, engine: Engine, cells: Mapping[str, CellRun], reports: Reports) -> None:
        """See `Executor.run`."""
        free = self._cores(len(cells))
        waiting = deque(cells)
        pending: Pending = {}
        samples: SimpleQueue[tuple[str, CellSample]] = SimpleQueue()
        pool = ThreadPoolExecutor(max_workers=len(free))
        try:
            while waiting or pending:
                while waiting and free:
                    cell_id, core = waiting.popleft(), free.pop(0)
                    reports.started(cell_id)
                    cell = replace(cells[cell_id], core=core, hear=partial(_put, samples, cell_id))
                    pending[pool.submit(_timed, engine, cell, reports)] = (cell_id, core)
                done = wait(pending, timeout=LOOK_S, return_when=FIRST_COMPLETED).done
                # Those of a cell that is done came before its end.
                while not samples.empty():
                    reports.progress(*samples.get())
                free += _report(pending, done, reports)
        except BaseException:
            engine.stop()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            # A cell that ended while another was interrupted or broke has a result like any other.
            ended = [future for future in pending if not future.cancelled() and future.exception() is None]
            _report(pending, ended, reports)

    def _cores(self, cells: int) -> list[int | None]:
        """A core for each cell at a time, of its own if there are enough.

        Commands that run at the same time with few jobs begin at different cores.
        """
        cores = sorted(os.sched_getaffinity(0))
        jobs = min(self.jobs or len(cores), max(cells, 1))
        return [cores[(os.getpid() + job) % len(cores)] if jobs <= len(cores) else None for job in range(jobs)]


def in_order(plans: Mapping[str, Plan], costs_s: Mapping[str, float], jobs: int) -> list[str]:
    """The cells of plans, by the seconds that each is expected to take.

    Networks come in the order of their longest cells, so many at a time as there are `jobs`: while the template of one
    boots, cells of others run.
    """
    longest_first = sorted(plans, key=costs_s.__getitem__, reverse=True)
    waiting = deque(map(deque, _by_network(plans, longest_first)))
    lanes: deque[deque[str]] = deque()
    found = []
    while waiting or lanes:
        while waiting and len(lanes) < jobs:
            lanes.append(waiting.popleft())
        lane = lanes.popleft()
        found.append(lane.popleft())
        if lane:
            lanes.append(lane)
    return found


def batches(plans: Mapping[str, Plan], most_s: float) -> Iterator[tuple[str, ...]]:
    """The cells in batches of one network each, of at most so many expected seconds, or of one cell."""
    for cells in _by_network(plans, plans):
        batch: list[str] = []
        busy_s = 0.0
        for cell_id in cells:
            cost_s = expected(plans[cell_id]).wall_s
            if batch and busy_s + cost_s > most_s:
                yield tuple(batch)
                batch, busy_s = [], 0.0
            batch.append(cell_id)
            busy_s += cost_s
        yield tuple(batch)


def _by_network(plans: Mapping[str, Plan], cells: Iterable[str]) -> list[list[str]]:
    """The cells of each network; networks and their cells are in the order of `cells`."""
    # Cells of one scenario share the objects of their networks.
    names: dict[int, str] = {}
    networks: dict[str, list[str]] = {}
    for cell in cells:
        network = plans[cell].network
        if id(network) not in names:
            names[id(network)] = json.dumps(schema.write(network), sort_keys=True)
        networks.setdefault(names[id(network)], []).append(cell)
    return list(networks.values())
