"""What a Dask worker does with a batch of cells.

It is given plans, and gives packed folders: a worker needs nothing of the machine that asks.

Orders and answers are bytes, so that neither end loads an object of Python that the other made, and a worker of another
version can refuse an order.
"""

import io
import json
import shutil
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from scpslab import plan as plans
from scpslab.core import strict_json
from scpslab.core.errors import CapabilityError, ResultError, ScpslabError
from scpslab.core.scratch import places, remove_dead, scratch
from scpslab.engine import ENGINES, CellRun, CellSample, Engine
from scpslab.engine.base import Interrupted, check_packs
from scpslab.engine.console import line_of
from scpslab.plan import Plan, PlanError, schema
from scpslab.plan.schema import Part, Range
from scpslab.plan.values import LONGEST_TEXT, CellId, PlainText
from scpslab.runs.store import cell_key, packed
from scpslab.setup import silent

# A batch that has become so long, or so large, ends: what is left of it becomes another one.
MOST_S, MOST_BYTES = 60.0, 32 << 20
# Engines of runs that do not come back are closed, and with them the networks that they keep ready.
IDLE_S = 600.0
SAMPLE_S = 1.0
DIGITS = 12


@dataclass(frozen=True)
class Given:
    """A cell in an answer: its packed folder, and the seconds that it took."""

    cell: str
    content: bytes
    took_s: float


@dataclass(frozen=True)
class Answer:
    """The cells of an order that have run.

    `trouble` says why the next one could not; without it, the others were not begun.
    """

    cells: tuple[Given, ...]
    trouble: str | None = None


@dataclass
class _Bench:
    """A run's engine in this process, and the folder of its cells; `stack` gives both back. `orders`: under way."""

    engine: Engine
    folder: Path
    stack: ExitStack
    used_s: float
    orders: int = 0


def topic(run: str) -> str:
    """Where workers tell samples of a run's cells."""
    return f"scpslab-{run}"


class Benches:
    """The engines of one worker, by runs."""

    def __init__(self, parent: Path | None = None) -> None:
        self._parent, self._lock = parent, threading.Lock()
        self._open: dict[str, _Bench] = {}
        self._stopped: set[str] = set()

    def carry_out(self, order: bytes, log: Callable[[str, Sequence[str]], None]) -> bytes:
        """Runs the cells of an order, and answers.

        `log`: gets the run's topic and a cell with a sample of it, at most one in SAMPLE_S: a scheduler passes on those
        of many workers.
        """
        given: list[Given] = []
        bench: _Bench | None = None
        trouble, began, size = None, time.monotonic(), 0
        told_s = -SAMPLE_S

        def hear(cell_id: str, sample: CellSample) -> None:
            nonlocal told_s
            if time.monotonic() - told_s >= SAMPLE_S:
                told_s = time.monotonic()
                log(topic(run), (cell_id, line_of(sample)))

        try:
            fields = json.loads(zlib.decompress(order))
            run, cells = fields["run"], {cell_id: plans.read(written) for cell_id, written in fields["plans"].items()}
            bench = self._bench(fields)
            check_packs(bench.engine, cells.values())
            bench.engine.prepare(silent, cells.values())
            for cell_id, plan in cells.items():
                # Preparations may take long, but every answer has a cell.
                if run in self._stopped or (given and time.monotonic() - began > MOST_S) or size > MOST_BYTES:
                    break
                _require_same(fields, cell_id, plan, bench.engine)
                place = bench.folder / f"{threading.get_ident()}-{len(given)}"
                started = time.monotonic()
                bench.engine.run(CellRun(plan, place, hear=partial(hear, cell_id)))
                given.append(Given(cell_id, packed(place), time.monotonic() - started))
                shutil.rmtree(place)
                size += len(given[-1].content)
        except Interrupted:
            pass
        except (ScpslabError, PlanError, OSError, MemoryError) as error:
            trouble = str(error) or type(error).__name__
        finally:
            if bench is not None:
                with self._lock:
                    bench.orders, bench.used_s = bench.orders - 1, time.monotonic()
        return pack_answer(Answer(tuple(given), trouble))

    def stop(self, run: str) -> None:
        """Ends a run's cells in this process at once, and gives back what it keeps for them."""
        self._stopped.add(run)
        with self._lock:
            bench = self._open.pop(run, None)
        if bench is not None:
            bench.engine.stop()
            bench.stack.close()

    def _bench(self, fields: Mapping[str, Any]) -> _Bench:
        run, name = fields["run"], fields["engine"]
        if name not in ENGINES:
            expected = "expected the version of scpslab of the machine that asked. Install that."
            raise CapabilityError(f'found no engine "{name}"; {expected}')
        with self._lock:
            idle_since_s = time.monotonic() - IDLE_S
            others = [(old, bench) for old, bench in self._open.items() if old != run and not bench.orders]
            for old in [old for old, bench in others if bench.used_s < idle_since_s]:
                self._open.pop(old).stack.close()
            if run not in self._open:
                remove_dead(*places(), *([self._parent] if self._parent else []))
                engine, stack = ENGINES[name](snapshots=fields["snapshots"]), ExitStack()
                folder = stack.enter_context(scratch(self._parent)).resolve()
                stack.callback(engine.close)
                self._open[run] = _Bench(engine, folder, stack, time.monotonic())
            self._open[run].orders += 1
            return self._open[run]


def order(run: str, cells: Mapping[str, Plan], engine: Engine) -> bytes:
    """What a worker is sent: the plans, and the keys of the results that it must give."""
    fields = {
        "run": run,
        "engine": engine.name,
        "snapshots": engine.snapshots,
        "parts": _parts(engine),
        "keys": {cell_id: cell_key(plan, engine.hash(plan)) for cell_id, plan in cells.items()},
        "plans": {cell_id: plans.write(plan) for cell_id, plan in cells.items()},
    }
    return zlib.compress(json.dumps(fields).encode(), level=1)


def _parts(engine: Engine) -> dict[str, str]:
    """The SHA-256 of each built part of an engine."""
    return {name: part["sha256"] for name, part in engine.facts().get("parts", {}).items()}


def _require_same(fields: Mapping[str, Any], cell_id: str, plan: Plan, engine: Engine) -> None:
    """Refuses a cell whose result would be another one here.

    Raises:
        CapabilityError: the message names the parts that differ.
    """
    if cell_key(plan, engine.hash(plan)) == fields["keys"][cell_id]:
        return
    own = _parts(engine)
    differing = [
        f"another {name} ({own[name][:DIGITS]} instead of {wanted[:DIGITS]})"
        for name, wanted in fields["parts"].items()
        if name in own and own[name] != wanted
    ]
    expected = "expected those of the machine that asked"
    advice = "Use the same version of scpslab, and the same built parts: share or copy the cache folder."
    raise CapabilityError(f"found {'; '.join(differing) or 'another lab program or SCPS stack'}; {expected}. {advice}")


class _Entry(Part):
    """A cell in the head of an answer: how long it took, and the size of its result, which follows."""

    cell: CellId
    seconds: Annotated[float, Range(least=0)]
    size_bytes: Annotated[int, Range(least=0)]


class _Head(Part):
    """What an answer says before its results: a line of JSON."""

    cells: tuple[_Entry, ...]
    trouble: PlainText | None = None


def pack_answer(answer: Answer) -> bytes:
    """An answer as bytes."""
    entries = tuple(
        _Entry(cell=given.cell, seconds=given.took_s, size_bytes=len(given.content)) for given in answer.cells
    )
    trouble = None if answer.trouble is None else " ".join(answer.trouble.split())[:LONGEST_TEXT]
    head = json.dumps(schema.write(_Head(cells=entries, trouble=trouble))).encode()
    return b"".join((head, b"\n", *(given.content for given in answer.cells)))


def read_answer(content: object, cells: Sequence[str]) -> Answer:
    """The answer to an order of these cells.

    Raises:
        ResultError: these are not the bytes of one.
    """
    if not isinstance(content, bytes | bytearray | memoryview):
        raise ResultError("an object of Python")
    line, _, results = bytes(content).partition(b"\n")
    try:
        head = schema.read(_Head, strict_json.loads(line))
    except ValueError as error:
        raise ResultError(f"no answer ({error})") from error
    if (size := sum(entry.size_bytes for entry in head.cells)) != len(results):
        raise ResultError(f"results of {len(results)} bytes instead of {size}")
    if [entry.cell for entry in head.cells] != list(cells[: len(head.cells)]):
        raise ResultError("results of cells that it was not asked for")
    if not head.cells and head.trouble is None:
        raise ResultError("no result and no reason")
    stream = io.BytesIO(results)
    given = (Given(entry.cell, stream.read(entry.size_bytes), entry.seconds) for entry in head.cells)
    return Answer(tuple(given), head.trouble)
