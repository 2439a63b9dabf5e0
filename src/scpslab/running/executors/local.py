"""Runs cells on this machine in parallel: one per core, and on a machine that users share, when it is their turn."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any

from scpslab.engine import CellRun, Engine
from scpslab.engine.base import Interrupted
from scpslab.planning.cost import GUESTS_PER_CORE
from scpslab.running.executors.base import Executor, Reports
from scpslab.server import Full, Turn, Turns

# An interrupt is answered at once.
LOOK_S = 0.2


@dataclass(frozen=True)
class _Place:
    """A place for one cell at a time, on a core of its own if there are enough cores. `turn`: on a machine that users share."""

    core: int | None
    turn: Turn | None = None


@dataclass
class _Pending:
    """Cells that were started and have not been reported as ended, by their futures."""

    cells: dict[Future[tuple[dict[str, Any], float]], tuple[str, _Place]] = field(default_factory=dict)

    def report(self, done: Iterable[Future[tuple[dict[str, Any], float]]], reports: Reports) -> Iterable[_Place]:
        """Reports ended cells and frees their places. If one of them raised an exception, raises it after reporting the others."""
        places = []
        for future in sorted(done, key=lambda future: future.exception() is not None):
            cell_id, place = self.cells[future]
            try:
                reports.ended(cell_id, *future.result())
            except Interrupted as interrupted:
                raise KeyboardInterrupt from interrupted
            del self.cells[future]
            places.append(place)
        return places


@dataclass
class _Places:
    """The places that a run has left, each for its turn on a machine that users share. `say` is told when the run must wait, once."""

    free: list[_Place]
    turns: Turns | None
    say: Callable[[str], None]
    is_waiting: bool = False

    def take(self, cell: CellRun) -> _Place | Full:
        """A place for a cell; why it must wait, if it must. There is a free one."""
        if self.turns is None:
            return self.free.pop(0)
        turn = self.turns.take(GUESTS_PER_CORE * cell.plan.limits.memory_mib)
        if isinstance(turn, Turn):
            self.free.pop()
            return _Place(turn.core, turn)
        # As long as one of its cells runs, the run goes on.
        if turn.cells and not self.turns.held and not self.is_waiting:
            self.is_waiting = True
            self.say(str(turn))
        return turn

    def give_back(self, place: _Place) -> None:
        """A cell has left its place."""
        self.free.append(place)
        if self.turns is not None and place.turn is not None:
            self.turns.give_back(place.turn)

    def close(self) -> None:
        """Ends the run's part in the turns."""
        if self.turns is not None:
            self.turns.close()


def _timed(engine: Engine, cell: CellRun) -> tuple[dict[str, Any], float]:
    """A cell's status, and the seconds that it took."""
    began = time.monotonic()
    return engine.run(cell), time.monotonic() - began


class LocalExecutor(Executor):
    """Threads, each waiting for the engine. A cell starts only when the result before it is kept, so that no result is ever lost."""

    def run(self, engine: Engine, cells: Mapping[str, CellRun], reports: Reports) -> None:
        """See `Executor.run`."""
        places = _Places(self._places(len(cells)), Turns.here() if cells else None, reports.note)
        waiting = deque(cells)
        pending = _Pending()
        pool = ThreadPoolExecutor(max_workers=len(places.free))
        try:
            while waiting or pending.cells:
                pause_s = LOOK_S
                while waiting and places.free:
                    place = places.take(cells[waiting[0]])
                    if isinstance(place, Full):
                        pause_s = place.pause_s
                        break
                    cell_id = waiting.popleft()
                    reports.started(cell_id)
                    future = pool.submit(_timed, engine, replace(cells[cell_id], core=place.core))
                    pending.cells[future] = (cell_id, place)
                if not pending.cells:
                    time.sleep(pause_s)
                for place in pending.report(wait(pending.cells, timeout=pause_s, return_when=FIRST_COMPLETED).done, reports):
                    places.give_back(place)
        except BaseException:
            engine.stop()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            places.close()
            # A cell that ended while another was interrupted or broke has a result like any other.
            pending.report([future for future in pending.cells if not future.cancelled() and future.exception() is None], reports)

    def _places(self, cells: int) -> list[_Place]:
        cores = sorted(os.sched_getaffinity(0))
        jobs = min(self.jobs or len(cores), max(cells, 1))
        return [_Place(cores[job % len(cores)] if jobs <= len(cores) else None) for job in range(jobs)]
