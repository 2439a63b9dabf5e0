"""Runs cells on this machine in parallel: one per core."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any

from scpslab.engine import CellRun, Engine
from scpslab.engine.base import Interrupted
from scpslab.running.executors.base import Executor, Reports

# An interrupt is answered at once.
LOOK_S = 0.2


@dataclass(frozen=True)
class _Place:
    """A place for one cell at a time, on a core of its own if there are enough cores."""

    core: int | None


@dataclass
class _Pending:
    """Cells that were started and have not been reported as ended, by their futures."""

    cells: dict[Future[dict[str, Any]], tuple[str, _Place]] = field(default_factory=dict)

    def report(self, done: Iterable[Future[dict[str, Any]]], reports: Reports) -> Iterable[_Place]:
        """Reports ended cells and frees their places. If one of them raised an exception, raises it after reporting the others."""
        places = []
        for future in sorted(done, key=lambda future: future.exception() is not None):
            cell_id, place = self.cells[future]
            try:
                reports.ended(cell_id, future.result())
            except Interrupted as interrupted:
                raise KeyboardInterrupt from interrupted
            del self.cells[future]
            places.append(place)
        return places


class LocalExecutor(Executor):
    """Threads, each waiting for the engine. A cell starts only when the result before it is kept, so that no result is ever lost."""

    def run(self, engine: Engine, cells: Mapping[str, CellRun], reports: Reports) -> None:
        """See `Executor.run`."""
        free = self._places(len(cells))
        waiting = list(cells)
        pending = _Pending()
        pool = ThreadPoolExecutor(max_workers=len(free))
        try:
            while waiting or pending.cells:
                while waiting and free:
                    cell_id, place = waiting.pop(0), free.pop(0)
                    reports.started(cell_id)
                    future = pool.submit(engine.run, replace(cells[cell_id], core=place.core))
                    pending.cells[future] = (cell_id, place)
                free += pending.report(wait(pending.cells, timeout=LOOK_S, return_when=FIRST_COMPLETED).done, reports)
        except BaseException:
            engine.stop()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            # A cell that ended while another was interrupted or broke has a result like any other.
            pending.report([future for future in pending.cells if not future.cancelled() and future.exception() is None], reports)

    def _places(self, cells: int) -> list[_Place]:
        cores = sorted(os.sched_getaffinity(0))
        jobs = min(self.jobs or len(cores), max(cells, 1))
        return [_Place(cores[job % len(cores)] if jobs <= len(cores) else None) for job in range(jobs)]
