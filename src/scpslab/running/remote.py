"""What a worker does with a batch of cells. It is given plans, and gives folders: a worker needs nothing of the machine that asks.

Orders and answers are plain values, so that a worker with another version of the package can read an order and refuse it.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scpslab import plan as plans
from scpslab.engine import ENGINES, CellRun, Engine
from scpslab.engine.base import Interrupted
from scpslab.errors import CapabilityError, ScpslabError
from scpslab.plan import Plan, PlanError
from scpslab.planning.cost import GUESTS_PER_CORE
from scpslab.running.build import Build
from scpslab.running.store import SHARED, WRITING, Store, cell_key, packed
from scpslab.scratch import places, remove_dead, scratch
from scpslab.server import Turns
from scpslab.server.turns import waited

# A batch that has become so long, or so large, ends: what is left of it goes to whoever is free.
MOST_S, MOST_BYTES = 60.0, 32 << 20
# Engines of runs that do not come back are closed, and with them the networks that they keep ready.
IDLE_S = 600.0


@dataclass
class _Bench:
    """A run's engine in this process, and the folder of its cells."""

    engine: Engine
    folder: Path
    turns: Turns | None
    stack: ExitStack
    used_s: float

    def close(self) -> None:
        """Gives everything back."""
        with self.stack:
            self.engine.close()


_benches: dict[str, _Bench] = {}
_stopped: set[str] = set()
_lock = threading.Lock()


def order(run: str, cells: Mapping[str, Plan], build: Build, *, engine: str, snapshots: bool, token: str) -> dict[str, Any]:
    """What a worker is sent: the plans, and the build that it must have. `token`: a file in the store that it may share with whoever asks."""
    written = {cell_id: plans.write(plan) for cell_id, plan in cells.items()}
    body = zlib.compress(json.dumps(written).encode(), level=1)
    return {"run": run, "engine": engine, "snapshots": snapshots, "build": str(build), "plans": body, "token": token}


def carry_out(order: dict[str, Any], local: str | None = None) -> dict[str, Any]:
    """Runs the cells of an order in a folder within `local`: {"cells": [[id, packed result or None if the shared store has it, seconds], …]}.

    With "refused" this worker can run none of them, with "trouble" and "at" it could not run that cell; both say why. Cells that are in none of
    these were not begun.
    """
    done: list[list[Any]] = []
    answer: dict[str, Any] = {"cells": done}
    began = time.monotonic()
    size = 0
    at = ""
    try:
        cells, bench = _prepared(order, local)
        store = _shared(order["token"])
        for at, plan in cells.items():
            if order["run"] in _stopped or time.monotonic() - began > MOST_S or size > MOST_BYTES:
                break
            place = bench.folder / f"{threading.get_ident()}-{len(done)}"
            with turn_of(bench.turns, plan, lambda: order["run"] in _stopped) as core:
                started = time.monotonic()
                bench.engine.run(CellRun(plan, place, core))
            content = packed(place)
            shutil.rmtree(place)
            kept = store is not None and _keep(store, cell_key(plan, bench.engine.hash(plan)), content)
            done.append([at, None if kept else content, time.monotonic() - started])
            size += 0 if kept else len(content)
            bench.used_s = time.monotonic()
    except Interrupted:
        pass
    except (CapabilityError, PlanError) as error:
        answer["refused"] = str(error)
    except (ScpslabError, OSError, MemoryError) as error:
        answer |= {"trouble": f"found {error}", "at": at}
    return answer


def stop(run: str) -> None:
    """Ends a run's cells in this process at once, and gives back what it keeps for them."""
    _stopped.add(run)
    with _lock:
        bench = _benches.pop(run, None)
    if bench is not None:
        bench.engine.stop()
        bench.close()


def _prepared(order: dict[str, Any], local: str | None) -> tuple[dict[str, Plan], _Bench]:
    """The plans of an order, and an engine of the build that it asks for.

    Raises:
        CapabilityError: this machine has another build, or lacks something.
    """
    cells = {cell_id: plans.read(fields) for cell_id, fields in json.loads(zlib.decompress(order["plans"])).items()}
    if order["engine"] not in ENGINES:
        raise CapabilityError(f'found no engine "{order["engine"]}"; expected the version of scpslab of the machine that asked. Install that.')
    with _lock:
        for run in [run for run, bench in _benches.items() if run != order["run"] and time.monotonic() - bench.used_s > IDLE_S]:
            _benches.pop(run).close()
        if order["run"] not in _benches:
            parent = Path(local) if local else None
            remove_dead(*places(), *([parent] if parent else []))
            engine = ENGINES[order["engine"]]()
            engine.snapshots = order["snapshots"]
            stack = ExitStack()
            folder = stack.enter_context(scratch(parent)).resolve()
            turns = Turns.here()
            if turns is not None:
                stack.callback(turns.close)
            _benches[order["run"]] = _Bench(engine, folder, turns, stack, time.monotonic())
        bench = _benches[order["run"]]
        bench.engine.prepare(lambda text: None, cells.values())
        Build.of(cells, bench.engine).require(Build.parse(order["build"]))
        return cells, bench


@contextmanager
def turn_of(turns: Turns | None, plan: Plan, is_over: Callable[[], bool]) -> Iterator[int | None]:
    """A cell's turn on a machine that users share: its core, or None for any.

    Raises:
        Interrupted: `is_over` said meanwhile that the run is.
    """
    if turns is None:
        yield None
        return
    turn = waited(turns, GUESTS_PER_CORE * plan.limits.memory_mib, is_over)
    if turn is None:
        raise Interrupted
    try:
        yield turn.core
    finally:
        turns.give_back(turn)


def _shared(token: str) -> Store | None:
    """The store that this worker shares with whoever asks; None if it does not see the file that they have put there."""
    named = os.environ.get(SHARED)
    if not token or not named or not (Path(named) / WRITING / token).is_file():
        return None
    return Store(Path(named).absolute())


def _keep(store: Store, key: str, content: bytes) -> bool:
    """Whether a store has a result now. Where it has no room, or has another result, perhaps of a worker that lies, this one travels."""
    try:
        return store.put(key, content) and store.has(key, content)
    except OSError:
        return False


@atexit.register
def _close_all() -> None:
    for run in list(_benches):
        stop(run)
