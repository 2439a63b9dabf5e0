"""One run: finds the cells that already have a result, has an executor carry out the others, and keeps results. Finished cells always survive."""

from __future__ import annotations

import json
import os
import platform
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from scpslab import analysis as results
from scpslab import plan as plans
from scpslab import scenario
from scpslab.core.errors import CapabilityError, LabError, ResultError, UsageError
from scpslab.core.scratch import places, remove_dead
from scpslab.core.units import UnitError, parse
from scpslab.engine import ENGINES, CellRun, Engine
from scpslab.engine.base import not_promised, own_images
from scpslab.plan import Plan
from scpslab.running.command import DEFAULT_ENGINE, command, program
from scpslab.running.events import CellDone, CellStarted, Event, Listener, Note, RunDone, RunFailed, RunInterrupted, RunStarted
from scpslab.running.executors import EXECUTORS
from scpslab.running.rebuilt import vectors_of
from scpslab.running.shard import DONE, FOLDER, Shard
from scpslab.runs import NewerFormat, RunFolder, held
from scpslab.runs.find import RUNS
from scpslab.runs.run import FILE, TOOK, VECTORS
from scpslab.runs.store import LIMIT, DamagedEntryError, Store, cell_key, stores
from scpslab.scenario import planning
from scpslab.scenario.model import Check
from scpslab.scenario.topologies import OnDisk

from scpslab.kinds.errors.vector_file import scenario as vector_file

# A cell that failed is tried again; the others are results.
KEPT = ("completed", "incomplete", "unsupported")
# Larger vectors stay where they are, and their runs cannot be verified: whoever reads an archive has all of it in memory.
LARGEST_VECTOR = 1 << 20
FREE_BYTES_PER_RUN = 200 * 10**6
# Of the cells of a run, at most this share is missing in its manifest while it runs.
UNWRITTEN_SHARE = 0.05


@dataclass(frozen=True)
class RunOptions:
    """Options of this machine and this run, not of the experiment."""

    engine: str = DEFAULT_ENGINE
    jobs: int | None = None
    executor: str = "local"
    # Who has workers, for executors that run cells elsewhere.
    cluster: str | None = None
    use_cache: bool = True
    snapshots: bool = True
    out: Path = RUNS
    overrides: list[str] = field(default_factory=list)
    trust: bool = False
    # Only this part of the cells.
    shard: Shard | None = None

    def __post_init__(self) -> None:
        if not str(self.out).isprintable():
            said = "found characters that cannot be printed; expected a folder without them. Choose another one."
            raise UsageError(f"--out {str(self.out)!a}: {said}")

    def place(self, name: str) -> Path:
        """The folder of a run or campaign of this name."""
        return self.out / FOLDER / f"{name}{self.shard.suffix}" if self.shard else self.out / name


@dataclass(frozen=True)
class RunResult:
    """The folder of a run, and its outcome."""

    folder: Path
    completed: int
    incomplete: int
    failed: int
    checks: tuple[Check, ...] = ()


class Described(Protocol):
    """The facts about its scenario that a run records."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def seed(self) -> int:
        """The root of its random streams."""


class PlansRun:
    """One execution of plans, by cell id."""

    def __init__(
        self,
        scenario: Described,
        resolved: str,
        plans: dict[str, Plan],
        options: RunOptions,
        listeners: Sequence[Listener] = (),
        own: Mapping[str, bytes] | None = None,
    ) -> None:
        self.options, self.listeners = options, tuple(listeners)
        self.scenario = scenario
        self.checks: tuple[Check, ...] = ()
        self.warnings: list[str] = []
        # What the manifest says of who asked for the run; plans from an archive have no command of their own.
        self.asked: dict[str, Any] = {}
        self.whole = plans
        self.plans = {cell_id: plans[cell_id] for cell_id in options.shard.cells(plans)} if options.shard else plans
        self.cells = tuple(self.plans)
        self.resolved = resolved
        self.own = dict(own or {})
        self.name = RunFolder.name_of(scenario.name, resolved, options.engine, self.own)
        self.folder = RunFolder(options.place(self.name))
        self.engine: Engine = ENGINES[options.engine](snapshots=options.snapshots)
        self.stores = stores()
        self._full: list[Store] = []
        self.executor = EXECUTORS[options.executor](options.jobs, options.cluster)
        self.statuses: dict[str, str] = {}
        self._told: set[str] = set()
        self._unwritten = 0

    def run(self) -> RunResult:
        """Runs every cell that has no result yet, then derives results.csv. The listeners receive events (events.py).

        Raises:
            CapabilityError: the machine lacks something; nothing was run.
            UsageError: another process runs in the same folder.
            KeyboardInterrupt: finished cells are kept.
        """
        _check_room(self.options.out)
        _most_bytes()
        remove_dead(*places())
        with held(self.folder.path):
            return self._run()

    def _run(self) -> RunResult:
        for warning in self.warnings:
            self._tell(Note(warning))
        self.engine.prepare(lambda text: self._tell(Note(text)), self.whole.values())
        self.keys = {cell_id: cell_key(plan, self.engine.hash(plan)) for cell_id, plan in self.plans.items()}
        engine_hashes = sorted({self.engine.hash(plan) for plan in self.whole.values()})
        facts = {"scenario": self.scenario.name, "engine": self.engine.name, "engine_hashes": engine_hashes, "seed": self.scenario.seed}
        facts |= self.asked | {"program": program(), "machine": _machine() | self.engine.facts()}
        if self.engine.deterministic and (said := not_promised(self.whole.values())):
            self._tell(Note(said))
            facts["not_promised"] = sorted(cell_id for cell_id, plan in self.whole.items() if own_images(plan))
        self.manifest = self._open(facts | self._as_shard())
        self._drop_foreign_cells()
        started = time.monotonic()
        name, folder = self.scenario.name, self.folder.path
        self._tell(RunStarted(name, folder, self.engine.name, self.cells, self._expected()))
        try:
            self._carry_out()
            wall_s = round(time.monotonic() - started, 2)
            # The order in which cells ended must not show.
            for known in ("cells", TOOK):
                self.manifest[known] = dict(sorted(self.manifest[known].items()))
            self.manifest |= {"status": DONE if self.options.shard else "completed", "wall_s": wall_s}
            self.folder.write_manifest(self.manifest)
            if self.cells:
                results.collect(folder)
        except KeyboardInterrupt:
            self._tell(RunInterrupted(name, folder))
            raise
        except Exception as error:
            self._tell(RunFailed(name, folder, error))
            raise
        if (most_bytes := _most_bytes()) is not None:
            self.stores[0].trim(most_bytes=most_bytes)
        self._tell(RunDone(name, folder, wall_s))
        counts = list(self.statuses.values())
        return RunResult(self.folder.path, counts.count("completed"), counts.count("incomplete"), counts.count("failed"), self.checks)

    def _as_shard(self) -> dict[str, Any]:
        """What the manifest of a shard says besides."""
        shard = self.options.shard
        return {"shard": {"run": self.name, "number": shard.number, "of": shard.of}} if shard else {}

    def _expected(self) -> dict[str, planning.Expected]:
        """What each cell takes. An engine whose results can be repeated has virtual time; in the others time is real."""
        return {cell_id: planning.expected(plan, in_virtual_time=self.engine.deterministic) for cell_id, plan in self.plans.items()}

    def _open(self, facts: dict[str, Any]) -> dict[str, Any]:
        """The manifest of the folder. A damaged manifest is set aside if the engine can repeat its cells; otherwise it is an error."""
        try:
            return self.folder.open(self.resolved, facts, self.own)
        except NewerFormat:
            raise
        except ResultError as error:
            if not self.engine.deterministic:
                what = f"found a damaged manifest.json, which identified the measurements of engine {self.engine.name}"
                raise ResultError(f"{self.folder.path}: {what}; expected a readable one. Move the folder away, and run the scenario again.") from error
            aside = self.folder.set_aside()
            self._tell(Note(f"{aside}: set a damaged manifest aside; cells are taken from the cache or run again"))
            return self.folder.open(self.resolved, facts, self.own)

    def _carry_out(self) -> None:
        """Gives every cell a result: the existing one, or the executor's."""
        waiting = [cell_id for cell_id in self.plans if not self._known(cell_id)]
        cells = {cell_id: CellRun(self.plans[cell_id], self.folder.cell(cell_id).path) for cell_id in waiting}
        try:
            self.executor.run(self.engine, cells, self)
        except KeyboardInterrupt:
            self.manifest["status"] = "interrupted"
            self._write_manifest()
            raise
        except Exception:
            self._write_manifest()
            raise
        finally:
            self.engine.close()

    def _known(self, cell_id: str) -> bool:
        """Whether the run folder or the cache already has a readable result of the cell."""
        key = self.keys[cell_id]
        entry = self.manifest["cells"].get(cell_id, {})
        usable = self.options.use_cache and entry.get("key") == key and entry.get("status") in KEPT
        status = self._status_of(cell_id) if usable else None
        if self.options.use_cache and self.engine.deterministic:
            for store in self.stores if status is None else ():
                status = status or self._fetched(store, cell_id)
        if status is None:
            return False
        self._note(cell_id, key, status)
        self._tell(CellDone(cell_id, status, cached=True))
        return True

    def _fetched(self, store: Store, cell_id: str) -> dict[str, Any] | None:
        """The status of a cell whose result a store has; None if it has none that can be read."""
        key = self.keys[cell_id]
        try:
            if not store.fetch(key, self.folder.cell(cell_id).path):
                return None
        except DamagedEntryError as error:
            self._tell(Note(str(error)))
            return None
        status = self._status_of(cell_id)
        if status is None:
            store.forget(key)
        return status

    def _keep(self, cell_id: str) -> None:
        """Keeps a result. Without a store, as when its disk is full, the run goes on: its own folder has everything."""
        for store in (one for one in self.stores if one not in self._full):
            try:
                store.keep(self.keys[cell_id], self.folder.cell(cell_id).path)
            except OSError as error:
                self._full.append(store)
                advice = 'Free disk space there ("scpslab clean --results"), or set SCPSLAB_CACHE to another folder.' if store is self.stores[0] else ""
                said = f"found {error.strerror}; expected a folder that takes results. This run goes on and keeps no more of them there."
                self._tell(Note(f"{store.root}: {said} {advice}".rstrip()))

    def _status_of(self, cell_id: str) -> dict[str, Any] | None:
        """The status of a cell in the run folder; None if a file from which results are derived is missing or damaged."""
        cell = self.folder.cell(cell_id)
        try:
            if not cell.has_ended or results.open_cell(cell.path).id != cell_id:
                return None
            if self.engine.deterministic and json.loads(cell.plan.read_bytes()) != plans.write(self.plans[cell_id]):
                return None
            return cell.status()
        except ResultError:
            return None

    def started(self, cell_id: str) -> None:
        """The executor starts a cell."""
        self._tell(CellStarted(cell_id))

    def ended(self, cell_id: str, status: dict[str, Any], took_s: float | None = None) -> None:
        """The executor has a cell's result. The run keeps it before it tells the listeners."""
        key = self.keys[cell_id]
        self._note(cell_id, key, status)
        if took_s is not None:
            self.manifest[TOOK][cell_id] = round(took_s, 3)
        self._write_some_manifests()
        if self.engine.deterministic and status["status"] in KEPT:
            self._keep(cell_id)
        if cell_id not in self._told:
            self._told.add(cell_id)
            self._tell(CellDone(cell_id, status, cached=False))

    def note(self, text: str) -> None:
        """The executor has something to say."""
        self._tell(Note(text))

    def _write_some_manifests(self) -> None:
        """Written after each cell, the manifests of a long run would be most of its work.

        A killed run finds cells that its manifest lacks in the store, if its results are kept.
        """
        self._unwritten += 1
        if not self.engine.deterministic or self._unwritten >= len(self.manifest["cells"]) * UNWRITTEN_SHARE:
            self._write_manifest()

    def _write_manifest(self) -> None:
        self.folder.write_manifest(self.manifest)
        self._unwritten = 0

    def _tell(self, event: Event) -> None:
        for listener in self.listeners:
            listener(event)

    def _note(self, cell_id: str, key: str, status: dict[str, Any]) -> None:
        self.statuses[cell_id] = status["status"]
        self.manifest["cells"][cell_id] = {"key": key, "status": status["status"]}

    def _drop_foreign_cells(self) -> None:
        """Removes cells of an interrupted write, or of an earlier state of the same scenario: they are not results of this run."""
        for folder in self.folder.cells.iterdir():
            if folder.is_symlink():
                folder.unlink()
            elif folder.name not in self.plans:
                shutil.rmtree(folder)
        for known in ("cells", TOOK):
            self.manifest[known] = {cell_id: entry for cell_id, entry in self.manifest[known].items() if cell_id in self.plans}


class ScenarioRun(PlansRun):
    """One execution of a scenario."""

    def __init__(self, name: str, options: RunOptions, listeners: Sequence[Listener] = ()) -> None:
        loaded = scenario.load(name, options.overrides, OnDisk(is_trusted=options.trust))
        cells = scenario.cells(loaded)
        plans = planning.plans(cells)
        if wrong := list(results.checks.misfits(loaded.model, plans.values())):
            raise loaded.places.error(wrong)
        own = scenario.own_files(loaded, cells)
        super().__init__(loaded, scenario.resolved_yaml(loaded, own.renamed), plans, options, listeners, {**own.contents, **_vectors(plans)})
        self.checks = loaded.model.checks
        self.asked = {"command": command(name, options.engine, options.overrides), "settings": list(options.overrides)}
        self.warnings = [*planning.warnings(plans, loaded.places.of(("sweep",))), *planning.doubts(cells, plans)]
        self.loaded = loaded
        if not loaded.is_of_project:
            place = os.path.relpath(loaded.path.resolve(), self.folder.path.resolve())
            self.asked |= {FILE: place, "evidence": loaded.is_evidence}

    def _run(self) -> RunResult:
        if not self.loaded.is_of_project and self.loaded.path.parent.resolve() != self.folder.path.resolve():
            self.folder.take_along(self.loaded.path.parent)
        return super()._run()


def _vectors(plans: Mapping[str, Plan]) -> dict[str, bytes]:
    """The stored error vectors of plans, as the run folder takes them along: with them, and without the paths in the plans, anybody can run them again."""
    found = {f"{VECTORS}/{vector.sha256}": vector_file.content(vector) for vector in frozenset(vectors_of(plans.values()))}
    return {name: content for name, content in sorted(found.items()) if len(content) <= LARGEST_VECTOR}


def _check_room(out: Path) -> None:
    place = out.resolve()
    while not place.exists():
        place = place.parent
    usage = shutil.disk_usage(place)
    if usage.free < FREE_BYTES_PER_RUN:
        room = f"{usage.free // 10**6} MB free" if usage.total else "a file system that keeps no files"
        raise CapabilityError(
            f"{out}: found {room}; expected at least {FREE_BYTES_PER_RUN // 10**6} MB. Free disk space, or choose another folder with --out."
        )
    if not os.access(place, os.W_OK):
        raise LabError(f"{out}: found no permission to write; expected a folder that you may write to. Choose another folder with --out.")


def _most_bytes() -> int | None:
    """The size up to which this machine keeps results; None: no limit."""
    try:
        return parse("size", named) if (named := os.environ.get(LIMIT)) else None
    except UnitError as error:
        raise UsageError(f"{LIMIT}: {error}. Correct it, or unset it.") from error


def _machine() -> dict[str, Any]:
    """Facts about this machine that are not part of the result."""
    return {"kernel": platform.release(), "python": platform.python_version(), "cpus": os.cpu_count()}


def run_scenario(name: str, options: RunOptions, listeners: Sequence[Listener] = ()) -> RunResult:
    """Runs a scenario (path or name, with or without a variant)."""
    return ScenarioRun(name, options, listeners).run()
