"""Runs cells on the workers of a Dask cluster: a task for each batch of cells of one network.

Dask places, repeats and scales; results come with answers.
"""

from __future__ import annotations

import gc
import importlib.util
import io
import json
import logging
import queue
import secrets
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scpslab import plan as plans
from scpslab.core.errors import CapabilityError, LabError, ResultError, UsageError
from scpslab.core.installation import add_extra
from scpslab.engine import CellRun, Engine
from scpslab.running import clusters, no_pickles, remote
from scpslab.running.executors import Executor, Reports
from scpslab.running.shard import batches
from scpslab.runs import CellFiles
from scpslab.runs.store import unpack
from scpslab.scenario.planning import expected

DASK_LOGGERS = ("distributed.client", "distributed.utils", "distributed.comm")
# Dask's error for a task whose workers ended, one after the other.
WORKER_ENDED = "KilledWorker"
# A batch is as long as it costs little to lose, and each place has some, so that all end at about the same time.
BATCH_S, BATCHES_PER_PLACE = 60.0, 4
# Workers that end with one and the same cell, each after Dask's own number of them, before the cell is given up.
MOST_LOSSES = 2


@dataclass(frozen=True)
class Patience:
    """Seconds: until an answer from a connection counts as lost; until workers, or a scheduler that went, must be
    there; between two looks.
    """

    answer_s: float = 30.0
    workers_s: float = 300.0
    look_s: float = 0.5


class DaskExecutor(Executor):
    """As many batches at a time as the workers have threads."""

    patience = Patience()

    def __init__(self, jobs: int | None, cluster: str | None = None) -> None:
        super().__init__(jobs)
        if cluster is None:
            raise UsageError("--executor dask: found no cluster; expected --cluster with an address, or local. Add it.")
        if importlib.util.find_spec("distributed") is None:
            raise CapabilityError(
                '--executor dask: found no Python package distributed; expected it with the extra "dask" of '
                f"scpslab. Run: {add_extra('dask')}."
            )
        self.named = clusters.check(cluster)

    def run(self, engine: Engine, cells: Mapping[str, CellRun], reports: Reports) -> None:
        """See `Executor.run`."""
        if not engine.deterministic:
            raise UsageError(
                f"--executor dask: found engine {engine.name}; expected virtual, whose results are the same on "
                "every machine. Use that."
            )
        if cells:
            with clusters.opened(self.named) as contact:
                _Run(self, contact, engine, cells, reports).run()


class _Run:
    """One call of the executor: batches that wait, and those that are out as tasks."""

    def __init__(
        self,
        executor: DaskExecutor,
        contact: tuple[str, Any],
        engine: Engine,
        cells: Mapping[str, CellRun],
        reports: Reports,
    ) -> None:
        self.named, self.patience, self.contact = executor.named, executor.patience, contact
        self.engine, self.cells, self.reports = engine, cells, reports
        self.id = ""
        self.waiting: deque[tuple[str, ...]] = deque()
        self.out: dict[str, tuple[Any, tuple[str, ...]]] = {}
        self.answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.told: set[str] = set()
        self.losses: dict[str, int] = {}
        self.alone_since = time.monotonic()

    def run(self) -> None:
        """Until every cell is done. A connection that is lost is made again."""
        self.waiting.extend((cell_id,) for cell_id in self.cells)
        while self.waiting:
            client = self._connected()
            # Workers begin no cell of a connection that was ended, and end those that it left behind.
            earlier, self.id = self.id, secrets.token_hex(8)
            try:
                if earlier:
                    client.run(_stop, earlier, wait=False)
                self._cut_anew(client)
                while self.waiting or self.out:
                    self._turn(client)
            except (OSError, no_pickles.RefusedError) as error:
                self.reports.note(f"{self.named}: found no connection ({type(error).__name__}); trying again …")
                # What was out, was out in vain.
                self.waiting.extend(batch for _, batch in self.out.values())
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
        no_pickles.refuse()
        address, security = self.contact
        began = time.monotonic()
        while True:
            # A client that could not connect closes itself when it is collected. If that were while the next one
            # starts, both would wait for ever.
            gc.collect()
            try:
                return Client(
                    address, security=security, timeout=self.patience.answer_s, set_as_default=False, name="scpslab"
                )  # type: ignore[no-untyped-call]
            except (OSError, no_pickles.RefusedError) as error:
                if time.monotonic() - began > self.patience.workers_s:
                    raise LabError(
                        f"{self.named}: found no scheduler for {self.patience.workers_s:g} s; expected one. "
                        "Start it again, and repeat the command: finished cells are kept."
                    ) from error
                time.sleep(self.patience.look_s)

    def _cut_anew(self, client: Any) -> None:
        """Puts the cells that wait into batches for the workers that are there."""
        waiting = {cell_id: self.cells[cell_id].plan for batch in self.waiting for cell_id in batch}
        total_s = sum(expected(plan).wall_s for plan in waiting.values())
        places = max(1, self._places(client))
        self.waiting = deque(batches(waiting, min(BATCH_S, total_s / (BATCHES_PER_PLACE * places))))

    def _turn(self, client: Any) -> None:
        """Hands out what there is a place for, and takes what has come.

        Raises:
            OSError: the connection is lost.
        """
        # Each place has the next batch at hand.
        most = 2 * self._places(client)
        while self.waiting and len(self.out) < most:
            self._send(client, self.waiting.popleft())
        with suppress(queue.Empty):
            key = self.answers.get(timeout=self.patience.look_s)
            while True:
                if key in self.out:
                    self._answer(*self.out.pop(key))
                key = self.answers.get_nowait()

    def _places(self, client: Any) -> int:
        """The threads of the workers that are there.

        Raises:
            TimeoutError: the connection is lost.
            LabError: somebody sent a message that is no data.
            CapabilityError: no worker came for too long.
        """
        if _is_deaf(client):
            raise LabError(
                f"{self.named}: found a message with an object of Python; expected data. "
                "A worker or the scheduler lies: trust neither."
            )
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
        for cell_id in batch:
            if cell_id not in self.told:
                self.told.add(cell_id)
                self.reports.started(cell_id)
        order = remote.order(self.id, {cell_id: self.cells[cell_id].plan for cell_id in batch}, self.engine)
        key = f"scpslab-{self.id}-{secrets.token_hex(4)}"
        future = client.submit(_carry_out, order, pure=False, key=key)
        self.out[key] = future, batch
        future.add_done_callback(lambda future: self.answers.put(future.key))

    def _answer(self, future: Any, batch: tuple[str, ...]) -> None:
        try:
            answer = remote.read_answer(future.result(timeout=self.patience.answer_s), batch)
        except (no_pickles.RefusedError, ResultError) as error:
            raise LabError(
                f"{self.named}: found {error} for an answer; expected what scpslab answers. A worker lies: "
                "trust none of them."
            ) from error
        except Exception as error:
            # Dask's own errors have no common base.
            self._lost(future, batch, no_pickles.error_texts(error.args[0] if error.args else b""))
            return
        finally:
            future.release()
        for given in answer.cells:
            self.reports.ended(given.cell, self._unpacked(given), given.took_s)
        if answer.trouble is not None:
            raise LabError(
                f"{self.named}: a worker "
                f"{answer.trouble if answer.trouble.startswith('found') else f'found {answer.trouble}'}"
            )
        if left := batch[len(answer.cells) :]:
            self.waiting.append(left)

    def _lost(self, future: Any, batch: tuple[str, ...], said: tuple[str, ...]) -> None:
        """A task without an answer: its cells wait again, one by one if workers ended with them, so that the cell that
        ends workers is found.

        Raises:
            LabError: no other worker would do better.
        """
        if future.status == "error" and WORKER_ENDED not in said:
            raise LabError(
                f"{self.named}: a worker found {': '.join(said[:2]) or 'an error'}; "
                "expected the same version of scpslab as here. Install it there."
            )
        if future.status != "error":
            self.waiting.append(batch)
            return
        if len(batch) == 1:
            self.losses[batch[0]] = self.losses.get(batch[0], 0) + 1
            if self.losses[batch[0]] >= MOST_LOSSES:
                raise LabError(
                    f"{self.named}: cell {batch[0]}: found that every worker ended which ran it; expected a result. "
                    "Look at the workers' logs."
                )
        self.waiting.extend((cell_id,) for cell_id in batch)

    def _unpacked(self, given: remote.Given) -> dict[str, Any]:
        """The status of a result, which is in the cell's folder then."""
        cell = self.cells[given.cell]
        files = CellFiles(cell.folder)
        try:
            unpack(io.BytesIO(given.content), cell.folder)
            is_mine = json.loads(files.plan.read_bytes()) == plans.write(cell.plan)
            status = files.status()
        except (ResultError, OSError, ValueError) as error:
            what = f"found a damaged result ({str(error).removeprefix('found ')}); expected a whole one"
            raise LabError(f"{self.named}: cell {given.cell}: {what}. Trust no worker there.") from error
        if not is_mine:
            raise LabError(
                f"{self.named}: cell {given.cell}: found the result of another plan; expected this cell's. "
                "Trust no worker there."
            )
        return status


def _is_deaf(client: Any) -> bool:
    """Whether the client reads no messages any more, though it is connected: one of them was no data
    (no_pickles.py).
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


def _benches() -> remote.Benches:
    """On a worker: its own."""
    from distributed import get_worker  # noqa: PLC0415  # the extra dask

    worker = get_worker()
    return worker.__dict__.setdefault("scpslab_benches", remote.Benches(Path(worker.local_directory)))  # type: ignore[no-any-return]


def _carry_out(order: bytes) -> bytes:
    """On a worker: an order in the worker's own folder."""
    return _benches().carry_out(order)


async def _stop(run: str, dask_worker: Any = None) -> None:
    """On a worker: ends what runs for a run.

    Dask waits for plain functions, and nobody waits for a worker that does not answer.
    """
    if (benches := dask_worker.__dict__.get("scpslab_benches")) is not None:
        benches.stop(run)
