"""Runs cells on the workers of a Dask cluster. The run decides which worker gets what (dispatch.py); Dask starts workers and carries orders and answers."""

from __future__ import annotations

import importlib.util
import io
import json
import logging
import queue
import secrets
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scpslab import plan as plans
from scpslab.engine import CellRun, Engine
from scpslab.errors import CapabilityError, LabError, ResultError, UsageError
from scpslab.planning import expected
from scpslab.runfolder import CellFiles
from scpslab.running import remote
from scpslab.running.build import Build
from scpslab.running.clusters import Cluster
from scpslab.running.dispatch import Batch, Dispatch, GivenUpError
from scpslab.running.executors.base import Elsewhere, Executor, Reports
from scpslab.running.parts import by_network
from scpslab.running.store import WRITING, DamagedEntryError, Store, WrongBytesError, cell_key, packed, shared_store, unpack
from scpslab.scratch import scratch
from scpslab.server import Turns

EXTRA = 'expected it with the extra "dask" of scpslab. Run: pip install "scpslab[dask]".'
FAILED = "failed"
DASK_LOGGERS = ("distributed.client", "distributed.utils", "distributed.comm")
# A cell that failed is tried so often in all: a worker without memory or time fails cells that others do not.
MOST_TRIES = 3


@dataclass(frozen=True)
class Patience:
    """Seconds: until an answer from a connection counts as lost; until workers must be there; how much later than expected a batch is run twice."""

    answer_s: float = 30.0
    workers_s: float = 300.0
    late_s: float = 60.0
    look_s: float = 0.5


class DaskExecutor(Executor):
    """A batch at a time for each thread of each worker. Results come through the store that a worker shares with this machine, or with the answer."""

    patience = Patience()

    def __init__(self, jobs: int | None, elsewhere: Elsewhere | None = None) -> None:
        super().__init__(jobs)
        if elsewhere is None or elsewhere.cluster is None:
            raise UsageError("--executor dask: found no cluster; expected --cluster with an address, a YAML file, or local. Add it.")
        if importlib.util.find_spec("distributed") is None:
            raise CapabilityError(f"--executor dask: found no Python package distributed; {EXTRA}")
        self.cluster, self.elsewhere = Cluster.parse(elsewhere.cluster), elsewhere

    def run(self, engine: Engine, cells: Mapping[str, CellRun], reports: Reports) -> None:
        """See `Executor.run`."""
        if not engine.deterministic:
            raise UsageError(f"--executor dask: found engine {engine.name}; expected virtual, whose results are the same on every machine. Use that.")
        if cells:
            turns = Turns.here() if self.elsewhere.check else None
            with closing(turns) if turns else nullcontext(), ThreadPoolExecutor(max_workers=1) as checks, _tokens(self.elsewhere) as (store, token):
                _Run(self, engine, cells, reports, _Checks(checks, turns), store, token).run()


@contextmanager
def _tokens(elsewhere: Elsewhere) -> Iterator[tuple[Store | None, str]]:
    """The shared store, and a file in it by which workers recognise it."""
    shared = shared_store()
    if shared is None or not elsewhere.use_stores:
        yield None, ""
        return
    file = shared.root / WRITING / f"token-{secrets.token_hex(16)}"
    try:
        file.parent.mkdir(exist_ok=True)
        file.touch()
    except OSError:
        yield None, ""
        return
    try:
        yield shared, file.name
    finally:
        file.unlink(missing_ok=True)


@dataclass(frozen=True)
class _Checks:
    """Where this machine runs cells of workers too, one at a time, and its turns if users share it."""

    pool: ThreadPoolExecutor
    turns: Turns | None


@dataclass
class _Link:
    """A connection to a scheduler, the orders that are out, and the answers that have come, by the numbers of batches."""

    client: Any
    run: str
    out: dict[int, Any] = field(default_factory=dict)
    answers: queue.SimpleQueue[int] = field(default_factory=queue.SimpleQueue)

    def send(self, batch: Batch, order: dict[str, Any]) -> None:
        """Hands a batch to its worker and no other."""
        future = self.client.submit(
            _carry_out, order, workers=[batch.worker], allow_other_workers=False, pure=False, retries=0, key=f"scpslab-{self.run}-{batch.number}"
        )
        self.out[batch.number] = future
        future.add_done_callback(lambda _: self.answers.put(batch.number))

    def close(self) -> None:
        """Drops everything."""
        for future in self.out.values():
            with suppress(Exception):
                future.release()
        with suppress(Exception):
            self.client.close(timeout=2)


class _Run:
    """One call of the executor."""

    def __init__(
        self, asked: DaskExecutor, engine: Engine, cells: Mapping[str, CellRun], reports: Reports, checks: _Checks, store: Store | None, token: str
    ) -> None:
        self.asked, self.engine, self.cells, self.reports, self.checks, self.store, self.token = asked, engine, cells, reports, checks, store, token
        self.patience = asked.patience
        costs = {cell_id: expected(cells[cell_id].plan).wall_s for cell_id in by_network({cell_id: cell.plan for cell_id, cell in cells.items()})}
        self.dispatch = Dispatch(costs)
        self.id = secrets.token_hex(8)
        self.generation = 0
        self.tries: dict[str, int] = {}
        self.told: set[str] = set()
        self.checking: dict[Future[bytes], tuple[str, str, bytes]] = {}
        self.took_s = self.expected_s = 0.0
        self.is_over = False
        self.link: _Link | None = None
        self.alone_since: float | None = None
        self.next_look_s = 0.0

    def run(self) -> None:
        """Until every cell is done."""
        try:
            while not self.dispatch.is_over or self.checking:
                try:
                    link = self._connected()
                    self._look(link)
                except OSError as error:
                    self._cut(error)
                else:
                    self._turn(link)
        except GivenUpError as error:
            raise LabError(f"{error}. Look at the logs of the workers; cells that ended are kept.") from error
        finally:
            self._end()

    def _look(self, link: _Link) -> None:
        """A look at the workers, which is also one at the connection. It costs something for each worker, so it is not made for each result.

        Raises:
            OSError: the connection is lost.
        """
        now = time.monotonic()
        if now < self.next_look_s:
            return
        self.next_look_s = now + self.patience.look_s
        self.dispatch.present(link.client.nthreads())
        self._complain_if_alone()
        pace = self.took_s / self.expected_s if self.expected_s else 10.0
        for batch in self.dispatch.spare(now, self.patience.late_s, pace):
            self._send(link, batch)

    def _turn(self, link: _Link) -> None:
        """Orders for workers that have a place, answers, checks."""
        # Every batch that is out has an order; orders of batches that are not any more are dropped.
        if len(link.out) > len(self.dispatch.batches):
            for number in [number for number in link.out if number not in self.dispatch.batches]:
                link.out.pop(number).release()
        for batch in self.dispatch.give(time.monotonic()):
            self._send(link, batch)
        self._answers(link)
        self._checked()

    def _connected(self) -> _Link:
        """The connection; a new one if there is none."""
        if self.link is None:
            from distributed import Client  # noqa: PLC0415  # the extra dask

            # What goes wrong with a connection is the run's to tell, in its own words and without a traceback.
            for logger in DASK_LOGGERS:
                logging.getLogger(logger).setLevel(logging.CRITICAL)
            self.generation += 1
            client = Client(self.asked.cluster.opened(), timeout=self.patience.answer_s, set_as_default=False, name="scpslab")  # type: ignore[no-untyped-call]
            self.link = _Link(client, f"{self.id}-{self.generation}")
            # What an earlier connection left behind keeps workers busy for nobody.
            for old in range(1, self.generation):
                client.run(_stop, f"{self.id}-{old}", wait=False)
        if self.link.client.status != "running":
            raise TimeoutError("the connection was lost")
        return self.link

    def _cut(self, error: Exception) -> None:
        """The scheduler cannot be reached: everything that is out is lost, and the next turn connects anew."""
        now = time.monotonic()
        if self.alone_since is None:
            self.alone_since = now
            self.reports.note(f"{self.asked.cluster.named}: found no connection ({type(error).__name__}); trying again …")
        if now - self.alone_since > self.patience.workers_s:
            raise LabError(
                f"{self.asked.cluster.named}: found no scheduler for {self.patience.workers_s:g} s; expected one. "
                "Start it again, and repeat the command: finished cells are kept."
            ) from error
        if self.link:
            self.link.close()
            self.link = None
        self.dispatch.cut_off()
        self.next_look_s = 0.0
        time.sleep(self.patience.look_s)

    def _complain_if_alone(self) -> None:
        """No worker may come for so long, not longer."""
        if self.dispatch.workers:
            self.alone_since = None
            return
        now = time.monotonic()
        self.alone_since = self.alone_since or now
        reasons = sorted(set(self.dispatch.excluded.values()))
        # Where all are refused, another one may be starting, but hardly for minutes.
        if now - self.alone_since > (self.patience.answer_s if reasons else self.patience.workers_s):
            found = f"no worker that can help ({'; '.join(reasons[:3])})" if reasons else f"no worker for {self.patience.workers_s:g} s"
            raise CapabilityError(f"{self.asked.cluster.named}: found {found}; expected one. Start workers, and repeat the command: finished cells are kept.")

    def _send(self, link: _Link, batch: Batch) -> None:
        for cell_id in batch.cells:
            if cell_id not in self.told:
                self.told.add(cell_id)
                self.reports.started(cell_id)
        chosen = {cell_id: self.cells[cell_id].plan for cell_id in batch.cells}
        build = Build.of(chosen, self.engine)
        link.send(batch, remote.order(link.run, chosen, build, engine=self.engine.name, snapshots=self.engine.snapshots, token=self.token))

    def _answers(self, link: _Link) -> None:
        """Takes what has come, after waiting for it a little."""
        with suppress(queue.Empty):
            number = link.answers.get(timeout=self.patience.look_s)
            while True:
                self._answer(link, number)
                number = link.answers.get_nowait()

    def _answer(self, link: _Link, number: int) -> None:
        future = link.out.pop(number, None)
        batch = self.dispatch.batches.get(number)
        if future is None or batch is None:
            return
        try:
            answer = future.result(timeout=self.patience.answer_s)
        except Exception as error:
            # Dask's own errors have no common base: a worker that ended, an answer that was lost, a worker without scpslab.
            if future.status == "error" and isinstance(error, (ImportError, AttributeError, TypeError)):
                self._exclude(batch.worker, f"found {error}; expected the same version of scpslab as here. Install it there")
            elif future.status == "cancelled":
                # The scheduler went, and came back before anybody looked: its cells wait again, and nobody is to blame.
                self.dispatch.ended(number, ())
            else:
                self.dispatch.lost(number)
            return
        finally:
            future.release()
        self._results(batch, answer)

    def _results(self, batch: Batch, answer: dict[str, Any]) -> None:
        """Unpacks results, tells them, and draws conclusions about the worker."""
        got = {cell_id: content for cell_id, content, _ in answer["cells"] if cell_id in batch.cells and cell_id not in self.dispatch.done}
        statuses: dict[str, dict[str, Any]] = {}
        wrong = ""
        for cell_id, content in got.items():
            try:
                status = self._unpacked(cell_id, content)
            except (WrongBytesError, DamagedEntryError, ResultError) as error:
                wrong = str(error)
                continue
            if status is not None and not self._is_tried_again(cell_id, status):
                statuses[cell_id] = status
        times = {cell_id: seconds for cell_id, _, seconds in answer["cells"]}
        for cell_id, seconds in times.items():
            self.took_s, self.expected_s = self.took_s + seconds, self.expected_s + self.dispatch.costs.get(cell_id, 0.0)
        for cell_id in self.dispatch.ended(batch.number, statuses):
            self._check(batch.worker, cell_id)
            self.reports.ended(cell_id, statuses[cell_id], times[cell_id])
        if wrong:
            self._exclude(batch.worker, f"found a result that is damaged or of another plan ({wrong})")
        elif "refused" in answer:
            self._exclude(batch.worker, answer["refused"])
        elif "trouble" in answer:
            others = len(self.dispatch.workers) > 1
            self.dispatch.trouble(batch.worker, answer["at"] or batch.cells[0], answer["trouble"])
            if others:
                self.reports.note(f"worker {batch.worker}: {answer['trouble']}; expected room to run cells. Its cells go to other workers.")

    def _is_tried_again(self, cell_id: str, status: dict[str, Any]) -> bool:
        """Whether a failed cell has tries left."""
        if status["status"] != FAILED:
            return False
        self.tries[cell_id] = self.tries.get(cell_id, 0) + 1
        return self.tries[cell_id] < MOST_TRIES

    def _unpacked(self, cell_id: str, content: bytes | None) -> dict[str, Any] | None:
        """The status of a result, which is in the cell's folder then; None if the store does not show it (yet).

        Raises:
            WrongBytesError, DamagedEntryError, ResultError: it is no result of this cell.
        """
        cell = self.cells[cell_id]
        key = cell_key(cell.plan, self.engine.hash(cell.plan)) if self.store is not None else ""
        if content is not None:
            unpack(io.BytesIO(content), cell.folder)
            # The store may have what another worker gave, which was withdrawn while that worker went on.
            if self.store is not None and not self.store.has(key, content):
                self.store.forget(key)
        elif self.store is None or not self.store.fetch(key, cell.folder):
            return None
        files = CellFiles(cell.folder)
        try:
            is_mine = json.loads(files.plan.read_bytes()) == plans.write(cell.plan)
        except (OSError, ValueError) as error:
            raise WrongBytesError("no plan") from error
        if not is_mine:
            raise WrongBytesError("another plan")
        return files.status()

    def _exclude(self, worker: str, why: str) -> None:
        self.dispatch.exclude(worker, why)
        self.reports.note(f"worker {worker}: {why} It gets no more cells.")

    def _check(self, worker: str, cell_id: str) -> None:
        """Has this machine run a cell too, if it is drawn."""
        sample = self.asked.elsewhere.check
        if sample is not None and sample.draws(len(self.cells)):
            theirs = packed(self.cells[cell_id].folder)
            self.checking[self.checks.pool.submit(self._own, cell_id)] = (worker, cell_id, theirs)

    def _own(self, cell_id: str) -> bytes:
        """This machine's result of a cell, which has its turn like every cell where users share the machine."""
        plan = self.cells[cell_id].plan
        with scratch(self.cells[cell_id].folder.parent.parent) as folder, remote.turn_of(self.checks.turns, plan, lambda: self.is_over) as core:
            self.engine.run(CellRun(plan, folder / "cell", core))
            return packed(folder / "cell")

    def _checked(self) -> None:
        """Compares what this machine has run with what workers gave. A worker that gave other bytes lies: none of its results count."""
        # They end in the order in which they were asked for.
        while self.checking and (future := next(iter(self.checking))).done():
            worker, cell_id, theirs = self.checking.pop(future)
            if future.result() == theirs or not (gave := self.dispatch.withdraw(worker)):
                continue
            for wrong in gave:
                self.reports.withdrawn(wrong)
            # Whatever else it would give is not wanted.
            if self.link:
                with suppress(Exception):
                    self.link.client.run(_stop, self.link.run, workers=[worker], wait=False)
            self._exclude(worker, f"cell {cell_id}: found other bytes than on this machine; expected the same. {len(gave)} of its results are withdrawn.")

    def _end(self) -> None:
        """Ends what runs for this run on workers; they stay."""
        self.is_over = True
        for future in self.checking:
            future.cancel()
        if self.checking:
            self.engine.stop()
        if self.link:
            with suppress(Exception):
                self.link.client.run(_stop, self.link.run, wait=False)
            self.link.close()


def _carry_out(order: dict[str, Any]) -> dict[str, Any]:
    """On a worker: an order in the worker's own folder."""
    from distributed import get_worker  # noqa: PLC0415  # the extra dask

    return remote.carry_out(order, str(Path(get_worker().local_directory)))


async def _stop(run: str) -> None:
    """On a worker: ends what runs for a run. Dask waits for plain functions, and nobody waits for a worker that does not answer."""
    remote.stop(run)
