"""Runs cells on this machine in parallel: one per core."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any

from scpslab.core.errors import UsageError
from scpslab.engine import CellRun, Engine
from scpslab.engine.base import Interrupted
from scpslab.running.executors.base import Executor, Reports

# An interrupt is answered at once.
LOOK_S = 0.2


@dataclass
class _Pending:
    """Cells that were started and have not been reported as ended, with their cores (None: any), by their futures."""

    cells: dict[Future[tuple[dict[str, Any], float]], tuple[str, int | None]] = field(default_factory=dict)

    def report(self, done: Iterable[Future[tuple[dict[str, Any], float]]], reports: Reports) -> Iterable[int | None]:
        """Reports ended cells; returns their cores. If one of them raised an exception, raises it after reporting the others."""
        cores = []
        for future in sorted(done, key=lambda future: future.exception() is not None):
            cell_id, core = self.cells[future]
            try:
                reports.ended(cell_id, *future.result())
            except Interrupted as interrupted:
                raise KeyboardInterrupt from interrupted
            del self.cells[future]
            cores.append(core)
        return cores


def _timed(engine: Engine, cell: CellRun) -> tuple[dict[str, Any], float]:
    """A cell's status, and the seconds that it took."""
    began = time.monotonic()
    return engine.run(cell), time.monotonic() - began


class LocalExecutor(Executor):
    """Threads, each waiting for the engine. A cell starts only when the result before it is kept, so that no result is ever lost."""

    def __init__(self, jobs: int | None, cluster: str | None = None) -> None:
        super().__init__(jobs)
        if cluster:
            raise UsageError("--cluster: found an executor that runs cells on this machine; expected --executor dask. Add it.")

    def run(self, engine: Engine, cells: Mapping[str, CellRun], reports: Reports) -> None:
        """See `Executor.run`."""
        free = self._cores(len(cells))
        waiting = deque(cells)
        pending = _Pending()
        pool = ThreadPoolExecutor(max_workers=len(free))
        try:
            while waiting or pending.cells:
                while waiting and free:
                    cell_id, core = waiting.popleft(), free.pop(0)
                    reports.started(cell_id)
                    pending.cells[pool.submit(_timed, engine, replace(cells[cell_id], core=core))] = (cell_id, core)
                free += pending.report(wait(pending.cells, timeout=LOOK_S, return_when=FIRST_COMPLETED).done, reports)
        except BaseException:
            engine.stop()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            # A cell that ended while another was interrupted or broke has a result like any other.
            pending.report([future for future in pending.cells if not future.cancelled() and future.exception() is None], reports)

    def _cores(self, cells: int) -> list[int | None]:
        """A core for each cell at a time, of its own if there are enough."""
        cores = sorted(os.sched_getaffinity(0))
        jobs = min(self.jobs or len(cores), max(cells, 1))
        return [cores[job % len(cores)] if jobs <= len(cores) else None for job in range(jobs)]
