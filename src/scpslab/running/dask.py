"""Runs cells on the workers of a Dask cluster: a task for each batch of cells of one network.

Dask places, repeats and scales; results come with answers.
"""

import gc
import importlib.util
import io
import logging
import queue
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from scpslab import plan as plans
from scpslab.core.errors import CapabilityError, LabError, ResultError, UsageError
from scpslab.core.installation import add_extra
from scpslab.engine import CellRun, Engine, console
from scpslab.lab.records import Status
from scpslab.plan import Plan
from scpslab.running import clusters, remote
from scpslab.running.clusters import RefusedError
from scpslab.running.executors import Executor, Reports, batches
from scpslab.runs import CellFiles
from scpslab.runs.store import unpack
from scpslab.scenario.planning import expected

DASK_LOGGERS = ("distributed.client", "distributed.utils", "distributed.comm")
# Dask's error for a task whose workers ended, one after the other.
WORKER_ENDED = "KilledWorker"
# Where a worker has what it runs cells with.
BENCHES = "scpslab_benches"
# Connections that are lost one after the other, without a result, before the run ends: each began the cells again.
MOST_LOST = 10
# A batch is as long as it costs little to lose, and each place has some, so that all end at about the same time.
BATCH_S, BATCHES_PER_PLACE = 60.0, 4


@dataclass(frozen=True)
class Patience:
    """Seconds: until an answer from a connection counts as lost; until workers, or a scheduler that went, must be
    there; between two looks.
    """

    answer_s: float = 30.0
    workers_s: float = 300.0
    look_s: float = 0.5


class DaskExecutor(Executor):
    """All batches at once: Dask gives them to the workers that are there, and has more started where it scales."""

    patience = Patience()

    def __init__(self, jobs: int | None, cluster: str) -> None:
        super().__init__(jobs)
        if importlib.util.find_spec("distributed") is None:
            found = "found no Python package distributed"
            advice = f"Run: {add_extra('dask')}."
            raise CapabilityError(f'--cluster: {found}; expected it with the extra "dask" of scpslab. {advice}')
        self.named = clusters.check(cluster)

    def check(self, engine: Engine) -> None:
        """Results of others count only where they are the same."""
        if not engine.deterministic:
            expected = "expected virtual, whose results are the same on every machine. Use that."
            raise UsageError(f"--cluster: found engine {engine.name}; {expected}")

    def run(self, engine: Engine, cells: Mapping[str, CellRun], reports: Reports) -> None:
        """See `Executor.run`."""
        if cells:
            _Run(self, clusters.security(), engine, cells, reports).run()


class _Run:
    """One call of the executor: the cells without a result, and the batches of them that are out as tasks."""

    def __init__(
        self,
        executor: DaskExecutor,
        security: Any,
        engine: Engine,
        cells: Mapping[str, CellRun],
        reports: Reports,
    ) -> None:
        self.named, self.patience, self.security = executor.named, executor.patience, security
        self.engine, self.cells, self.reports = engine, cells, reports
        self.id = ""
        self.left = {cell_id: run.plan for cell_id, run in cells.items()}
        self.out: dict[str, tuple[Any, tuple[str, ...]]] = {}
        # What Dask's threads leave for this one to do.
        self.calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.alone_since = time.monotonic()
        self.lost = 0

    def run(self) -> None:
        """Until every cell is done. A connection that is lost is made again."""
        for cell_id in self.left:
            self.reports.started(cell_id)
        while self.left:
            client = self._connected()
            # Workers begin no cell of a connection that was ended, and end those that it left behind.
            earlier, self.id = self.id, secrets.token_hex(8)
            try:
                client.subscribe_topic(
                    remote.topic(self.id), lambda event: self.calls.put(partial(self._progress, event))
                )
                if earlier:
                    client.run(_stop, earlier, wait=False)
                for batch in self._batches(client):
                    self._send(client, batch)
                while self.out:
                    self._turn(client)
            except (OSError, RefusedError) as error:
                self.lost += 1
                if self.lost == MOST_LOST:
                    raise LabError(
                        f"{self.named}: found {MOST_LOST} lost connections and no result between them; expected one. "
                        "Look at the network and the workers' logs, and repeat the command: finished cells are kept."
                    ) from error
                self.reports.note(f"{self.named}: found no connection ({type(error).__name__}); trying again")
                # What was out, was out in vain.
                self.out.clear()
            finally:
                _end(client, self.id)

    def _connected(self) -> Any:
        """A client, after as many attempts as there is patience for.

        Raises:
            LabError: the scheduler cannot be reached.
        """
        from distributed import Client  # noqa: PLC0415  # the extra dask

        # What goes wrong with a connection is the run's to tell, in its own words and without a traceback.
        for logger in DASK_LOGGERS:
            logging.getLogger(logger).setLevel(logging.CRITICAL)
        clusters.refuse()
        began = time.monotonic()
        while True:
            # A client that could not connect closes itself when it is collected. If that were while the next one
            # starts, both would wait for ever.
            gc.collect()
            try:
                wait_s = self.patience.answer_s
                return Client(self.named, security=self.security, timeout=wait_s, set_as_default=False, name="scpslab")
            except (OSError, RefusedError) as error:
                if time.monotonic() - began > self.patience.workers_s:
                    found = f"found no scheduler for {self.patience.workers_s:g} s"
                    advice = "Start it again, and repeat the command: finished cells are kept."
                    raise LabError(f"{self.named}: {found}; expected one. {advice}") from error
                time.sleep(self.patience.look_s)

    def _batches(self, client: Any) -> Iterator[tuple[str, ...]]:
        """The cells that are left, in batches for the workers that are there."""
        total_s = sum(expected(plan).wall_s for plan in self.left.values())
        return batches(self.left, min(BATCH_S, total_s / (BATCHES_PER_PLACE * max(1, self._places(client)))))

    def _turn(self, client: Any) -> None:
        """Takes what has come.

        Raises:
            OSError: the connection is lost.
        """
        self._places(client)
        with suppress(queue.Empty):
            call = self.calls.get(timeout=self.patience.look_s)
            while True:
                call()
                call = self.calls.get_nowait()

    def _places(self, client: Any) -> int:
        """The threads of the workers that are there.

        Raises:
            TimeoutError: the connection is lost.
            LabError: somebody sent a message that is no data.
            CapabilityError: no worker came for too long.
        """
        if _is_deaf(client):
            advice = "A worker or the scheduler lies: trust neither."
            raise LabError(f"{self.named}: found a message with an object of Python; expected data. {advice}")
        if client.status != "running":
            raise TimeoutError("the connection was lost")
        now = time.monotonic()
        places: int = sum(client.nthreads().values())
        if places:
            self.alone_since = now
        elif now - self.alone_since > self.patience.workers_s:
            raise CapabilityError(
                f"{self.named}: found no worker for {self.patience.workers_s:g} s; expected one. "
                "Start workers, and repeat the command: finished cells are kept."
            )
        return places

    def _send(self, client: Any, batch: tuple[str, ...]) -> None:
        order = remote.order(self.id, {cell_id: self.left[cell_id] for cell_id in batch}, self.engine)
        key = f"scpslab-{self.id}-{secrets.token_hex(4)}"
        future = client.submit(_carry_out, order, pure=False, key=key)
        self.out[key] = future, batch
        future.add_done_callback(lambda future: self.calls.put(partial(self._answer, client, future.key)))

    def _progress(self, event: object) -> None:
        """Tells a sample of a cell that runs; whatever else somebody says there is passed over."""
        match event:
            case (_, (str(cell_id), str(line))) if cell_id in self.left:
                if sample := console.read(line.encode(errors="replace"), console.sources(self.left[cell_id])):
                    self.reports.progress(cell_id, sample)

    def _answer(self, client: Any, key: str) -> None:
        """Takes an answer, unless it is of an earlier connection."""
        if key not in self.out:
            return
        future, batch = self.out.pop(key)
        try:
            answer = remote.read_answer(future.result(timeout=self.patience.answer_s), batch)
        except (RefusedError, ResultError) as error:
            found = f"found {error} for an answer"
            advice = "A worker lies: trust none of them."
            raise LabError(f"{self.named}: {found}; expected what scpslab answers. {advice}") from error
        except Exception as error:
            # Dask's own errors have no common base.
            self._lost(client, future, batch, clusters.error_texts(error.args[0] if error.args else b""))
            return
        finally:
            future.release()
        for result in answer.cells:
            self.reports.ended(result.cell, self._unpacked(result), result.took_s)
            del self.left[result.cell]
            self.lost = 0
        if (trouble := answer.trouble) is not None:
            raise LabError(f"{self.named}: a worker {trouble if trouble.startswith('found') else f'found {trouble}'}")
        if unfinished := batch[len(answer.cells) :]:
            self._send(client, unfinished)

    def _lost(self, client: Any, future: Any, batch: tuple[str, ...], texts: tuple[str, ...]) -> None:
        """A task without an answer. If workers ended with its cells, these are sent again one by one, so that the cell
        that ends workers is found.

        Raises:
            TimeoutError: the answer was lost with the connection.
            LabError: no other worker would do better.
        """
        if future.status != "error":
            raise TimeoutError("the answer was lost")
        if WORKER_ENDED not in texts:
            raise LabError(
                f"{self.named}: a worker found {': '.join(texts[:2]) or 'an error'}; "
                "expected the same version of scpslab as here. Install it there."
            )
        if len(batch) == 1:
            found = "found that every worker ended which ran it"
            advice = "Look at the workers' logs."
            raise LabError(f"{self.named}: cell {batch[0]}: {found}; expected a result. {advice}")
        for cell_id in batch:
            self._send(client, (cell_id,))

    def _unpacked(self, result: remote.Given) -> Status:
        """The status of a result, which is in the cell's folder then."""
        cell = self.cells[result.cell]
        try:
            unpack(io.BytesIO(result.content), cell.folder)
            return _status_of(CellFiles(cell.folder), cell.plan)
        except (ResultError, OSError, ValueError) as error:
            # Nobody must count it as a cell of this run.
            shutil.rmtree(cell.folder, ignore_errors=True)
            what = f"found a damaged result ({str(error).removeprefix('found ')}); expected a whole one of this cell"
            raise LabError(f"{self.named}: cell {result.cell}: {what}. Trust no worker there.") from error


def _status_of(files: CellFiles, plan: Plan) -> Status:
    if plans.parse(files.plan.read_bytes()).as_planned != plan:
        raise ResultError("found the result of another plan")
    return files.status()


def _is_deaf(client: Any) -> bool:
    """Whether the client reads no messages any more, though it is connected: one of them was no data
    (`clusters.refuse`).
    """
    reader = client._handle_report_task  # noqa: SLF001 (nothing else says it)
    if client.status != "running" or reader is None or not reader.done():
        return False
    # Else the client would say so again when it is closed.
    client._handle_report_task = None  # noqa: SLF001
    return reader.cancelled() or reader.exception() is not None


def _end(client: Any, run: str) -> None:
    """Ends what runs for a run on workers; they stay."""
    with suppress(Exception):
        client.run(_stop, run, wait=False)
    with suppress(Exception):
        client.close(timeout=2)


def _carry_out(order: bytes) -> bytes:
    """On a worker: an order in the worker's own folder."""
    from distributed import get_worker  # noqa: PLC0415  # the extra dask

    worker = get_worker()
    benches: remote.Benches = worker.__dict__.setdefault(BENCHES, remote.Benches(Path(worker.local_directory)))
    return benches.carry_out(order, worker.log_event)


async def _stop(run: str, dask_worker: Any = None) -> None:
    """On a worker: ends what runs for a run.

    Dask waits for plain functions, and nobody waits for a worker that does not answer.
    """
    if (benches := dask_worker.__dict__.get(BENCHES)) is not None:
        benches.stop(run)
