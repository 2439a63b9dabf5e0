"""Cells that are forked from templates: plans, engines without templates, digests, processes that are left."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scpslab import scenario
from scpslab.engine import CellRun, CellSample
from scpslab.engine.template import Fork
from scpslab.engine.virtual import VirtualEngine
from scpslab.lab.records import Status
from scpslab.plan import Plan
from scpslab.running.executors import LocalExecutor
from scpslab.scenario import planning
from scpslab.setup import silent

PLANS = Path(__file__).parents[1] / "same_bytes"
MEMORY = Path("/dev/shm")
# How long the system may take to end processes whose parent was killed.
END_LIMIT_S = 100.0


def plans_of(kind: str) -> dict[str, Plan]:
    """The plans of a file of tests/same_bytes."""
    return plans_of_file(PLANS / f"{kind}.yaml")


def plans_of_file(path: Path) -> dict[str, Plan]:
    """The plans of a scenario's file."""
    return {cell.id: planning.plan(cell) for cell in scenario.cells(scenario.load(str(path)))}


def with_seed(plan: Plan, seed: str) -> Plan:
    """The same cell with another seed of the kernel's random numbers."""
    return replace(plan, cell=replace(plan.cell, kernel_seed=seed))


def cells_like(plan: Plan, count: int) -> dict[str, Plan]:
    """Cells of one template that differ in their seeds."""
    return {f"c{number}": with_seed(plan, f"{number:02x}" * 32) for number in range(count)}


@dataclass(frozen=True)
class Undisturbed:
    """Undisturbed cells of one template, two at a time: plans, digests of their files, how long they took."""

    plans: Mapping[str, Plan]
    files: Mapping[str, str]
    took_s: float


class Statuses(dict[str, str]):
    """What an executor reports: how cells ended."""

    def progress(self, cell_id: str, sample: CellSample) -> None:
        """Nothing is done."""

    def ended(self, cell_id: str, status: Status, took_s: float | None = None) -> None:
        """Notes a status."""
        self[cell_id] = f"{status.status} {status.reason}".strip()

    def started(self, cell_id: str) -> None:
        """Nothing is done."""

    note = complete = started


@contextmanager
def prepared(plans: Mapping[str, Plan], *, snapshots: bool = True) -> Iterator[VirtualEngine]:
    """An engine without templates; without `snapshots` it makes none."""
    engine = VirtualEngine(snapshots=snapshots)
    engine.prepare(silent, plans.values())
    try:
        yield engine
    finally:
        engine.close()


def run(engine: VirtualEngine, plans: Mapping[str, Plan], folder: Path, jobs: int = 1) -> Statuses:
    """Runs cells in their order."""
    folder.mkdir(exist_ok=True)
    statuses = Statuses()
    LocalExecutor(jobs).run(
        engine, {cell_id: CellRun(plan, folder / cell_id) for cell_id, plan in plans.items()}, statuses
    )
    return statuses


def is_completed(statuses: Statuses, plans: Iterable[str]) -> bool:
    """Whether all of these cells, and no others, were completed."""
    return dict(statuses) == dict.fromkeys(plans, "completed")


def scratch_folders(memory: Path = MEMORY) -> set[Path]:
    """This process's folders in memory."""
    return set(memory.glob(f"scpslab-{os.getpid()}-*"))


def processes_in(folder: Path, sessions: Iterable[int] = ()) -> dict[int, str]:
    """Processes that work below a folder, or that belong to one of these sessions."""
    processes = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            place = (entry / "cwd").readlink()
            state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if state != "Z" and (place.is_relative_to(folder.resolve()) or int(session) in sessions):
            processes[int(entry.name)] = str(place)
    return processes


def left_after_a_while(folder: Path, sessions: Iterable[int] = ()) -> dict[int, str]:
    """Processes that are still there when the system has had time to end them."""
    limit = time.monotonic() + END_LIMIT_S
    while (found := processes_in(folder, sessions)) and time.monotonic() < limit:
        time.sleep(0.05)
    return found


@contextmanager
def meanwhile(engine: VirtualEngine, plans: Mapping[str, Plan], folder: Path, jobs: int = 2) -> Iterator[Statuses]:
    """Runs cells while the block does something else, and waits for them at its end."""
    statuses = Statuses()
    runner = threading.Thread(target=lambda: statuses.update(run(engine, plans, folder, jobs)))
    runner.start()
    try:
        yield statuses
    finally:
        runner.join()


def forks_of(engine: VirtualEngine) -> list[Fork]:
    """The forks that run now."""
    return [fork for template in engine.templates() for fork in template.running()]


def seen(look: Callable[[], list[Any]], limit_s: float = 600.0) -> Any:
    """The first of those that are looked for."""
    limit = time.monotonic() + limit_s
    while time.monotonic() < limit:
        if found := look():
            return found[0]
        time.sleep(0.0005)
    raise TimeoutError
