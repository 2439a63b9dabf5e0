"""Carries out runs: takes results that are there, has an executor run the other cells, and keeps what ends.

Finished cells always survive. The cells of all runs of a campaign are one list: no core waits for the end of a run.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Self

from scpslab import analysis as results
from scpslab import plan as plans
from scpslab.core.contents import content_of
from scpslab.core.errors import CapabilityError, LabError, NewerFormat, ResultError, UsageError
from scpslab.core.names import file_label, file_name
from scpslab.core.scratch import places, remove_dead
from scpslab.core.units import UnitError, parse
from scpslab.engine import ENGINES, CellRun, CellSample, Engine
from scpslab.engine.base import check_packs, not_promised, own_images
from scpslab.lab.records import Status
from scpslab.running import events
from scpslab.running.events import CellDone, CellProgress, CellStarted, Listener, Note, Tally
from scpslab.running.executors import Executor, in_order
from scpslab.running.run_plan import RunOptions, RunPlan, asked, plan_run, program
from scpslab.runs import CampaignFolder, held
from scpslab.runs.run import LOCK, Progress, seal
from scpslab.runs.store import LIMIT, Store, cell_key
from scpslab.scenario.campaign import load_campaign
from scpslab.scenario.model import Check
from scpslab.scenario.planning import expected

# A cell that failed is tried again; the others are results.
KEPT = ("completed", "incomplete", "unsupported")
FREE_BYTES_PER_RUN = 200 * 10**6
# Of the cells of a run, at most this share is missing in its manifest while it runs.
UNWRITTEN_SHARE = 0.05


@dataclass(frozen=True)
class RunResult:
    """The folder of a run, and its outcome."""

    folder: Path
    completed: int
    incomplete: int
    failed: int
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True)
class CampaignResult:
    """The folder of a campaign, and the outcome of its cells."""

    folder: Path
    runs: tuple[RunResult, ...]

    @property
    def failed(self) -> int:
        """The number of failed cells of all runs."""
        return sum(run.failed for run in self.runs)


def run_scenario(name: str, options: RunOptions, listeners: Sequence[Listener] = ()) -> RunResult:
    """Runs a scenario (path or name, with or without a variant)."""
    return execute(plan_run(name, options), listeners)


def execute(run: RunPlan, listeners: Sequence[Listener] = ()) -> RunResult:
    """Runs every cell that has no result yet, then derives results.csv. The listeners receive events (events.py).

    Raises:
        CapabilityError: the machine lacks something; nothing was run.
        UsageError: another process runs in the same folder.
        KeyboardInterrupt: finished cells are kept.
    """
    return _carry_out([run], run.options, events.to_all(listeners))[0]


def run_campaign(name: str, options: RunOptions, listeners: Sequence[Listener] = ()) -> CampaignResult:
    """Runs every scenario of a campaign (path or name, with or without a variant).

    All scenarios are planned before the first starts. campaign.json states the outcome whatever happens.

    Raises:
        ScenarioError: a file is not valid; nothing was run.
        KeyboardInterrupt: finished cells are kept.
    """
    campaign = load_campaign(name)
    tally = Tally()
    listeners = (tally, *listeners)
    tell = events.to_all(listeners)
    for pattern in campaign.left_out:
        tell(Note(f"{campaign.name}: skipped {pattern}, because no scenario has this name"))
    runs = []
    for member in campaign.members:
        overrides = [*member.overrides, *options.overrides]
        runs.append(plan_run(member.name, replace(options, overrides=overrides)))
    digest = hashlib.sha256("\n".join(run.name for run in runs).encode()).hexdigest()[:8]
    folder = CampaignFolder(options.out / file_name(file_label(campaign.name), digest))
    head = {"campaign": campaign.name, "title": campaign.title, **asked(name, options), "program": program()}
    entries = [
        {"scenario": run.scenario, "overrides": run.options.overrides, "cells": len(run.plans), "run": path}
        for run, path in ((run, folder.path_of(run.folder)) for run in runs)
    ]

    def write(**progress: object) -> None:
        fields = {**head, **progress, "left_out": campaign.left_out, "runs": entries}
        folder.write(fields, [run.folder for run in runs])

    of_campaign = campaign.name, folder.path
    failed = partial(events.CampaignFailed, *of_campaign)
    with held(folder.path):
        write(status="running")
        began = time.monotonic()
        names = tuple(run.scenario for run in runs)
        tell(events.CampaignStarted(*of_campaign, names, sum(len(run.plans) for run in runs)))
        with events.endings(tell, events.CampaignInterrupted(*of_campaign), failed):
            status = "interrupted"
            try:
                results = _carry_out(runs, options, tell)
                status = "completed"
            finally:
                wall_s = round(time.monotonic() - began, 2)
                done = {"cells": tally.done, "cells_from_cache": tally.cached, "virtual_s": round(tally.virtual_s, 3)}
                write(status=status, **done, wall_s=wall_s)
        tell(events.CampaignDone(*of_campaign, wall_s))
    return CampaignResult(folder.path, results)


def _carry_out(runs: Sequence[RunPlan], options: RunOptions, tell: Listener) -> tuple[RunResult, ...]:
    """Gives every cell of some runs a result, with one engine."""
    _check_room(options.out)
    most_bytes = _most_bytes()
    remove_dead(*places())
    for run in runs:
        for warning in run.warnings:
            tell(Note(warning))
    with ExitStack() as stack:
        engine = stack.enter_context(closing(ENGINES[options.engine](snapshots=options.snapshots)))
        every = [plan for run in runs for plan in run.plans.values()]
        executor = options.made_executor()
        executor.check(engine)
        check_packs(engine, every)
        engine.prepare(lambda text: tell(Note(text)), every)
        works: dict[Path, _Work] = {}
        try:
            # Settings may make two scenarios of a campaign the same run.
            for run in runs:
                if run.folder.path not in works:
                    stack.enter_context(held(run.folder.path))
                    works[run.folder.path] = _Work(run, tell, engine)
            for work in works.values():
                work.begin()
            with _Cells(list(works.values()), most_bytes) as cells:
                cells.carry_out(executor, engine)
        except BaseException as error:
            for work in works.values():
                work.break_off(error)
            raise
    return tuple(works[run.folder.path].result() for run in runs)


class _Cells:
    """The cells of some runs, to which an executor reports. A run is finished when its last cell has ended."""

    def __init__(self, works: list[_Work], most_bytes: int | None) -> None:
        self._works, self._most_bytes = works, most_bytes
        # By the ids that the executor has: cells of several runs have the same ones.
        self._of: dict[str, tuple[_Work, str]] = {}
        # Cells with the key of one that is carried out: they take its result.
        self._twins: dict[str, list[tuple[_Work, str]]] = {}
        self._finishing: deque[tuple[_Work, Future[list[str]]]] = deque()
        self._pool = ThreadPoolExecutor(max_workers=1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def carry_out(self, executor: Executor, engine: Engine) -> None:
        """Until all runs are finished."""
        for work in self._works:
            if not work.waiting:
                self._finish(work)
        while waiting := [(work, cell_id) for work in self._works for cell_id in work.waiting]:
            self._choose(waiting)
            costs = {name: work.expected[cell_id].wall_s for name, (work, cell_id) in self._of.items()}
            plans = {name: work.run.plans[cell_id] for name, (work, cell_id) in self._of.items()}
            cells = {
                name: CellRun(plans[name], self._of[name][0].folder.cell(self._of[name][1]).path)
                for name in in_order(plans, costs, executor.jobs or len(os.sched_getaffinity(0)))
            }
            executor.run(engine, cells, self)
        self._tell_finished(wait=True)

    def _choose(self, waiting: Iterable[tuple[_Work, str]]) -> None:
        self._of.clear()
        self._twins.clear()
        by_key: dict[str, str] = {}
        for number, (work, cell_id) in enumerate(waiting):
            name = cell_id if len(self._works) == 1 else f"{number}"
            first = by_key.setdefault(work.keys[cell_id], name) if work.takes_results else name
            if first == name:
                self._of[name], self._twins[name] = (work, cell_id), []
            else:
                self._twins[first].append((work, cell_id))

    def started(self, name: str) -> None:
        """The executor starts a cell."""
        work, cell_id = self._of[name]
        work.started(cell_id)

    def progress(self, name: str, sample: CellSample) -> None:
        """A cell that runs said what it does."""
        work, cell_id = self._of[name]
        work.tell(CellProgress(cell_id, sample, work.run.scenario))

    def complete(self, folder: Path) -> None:
        """A cell's folder is complete, in the thread that waited for it."""
        self._works[0].complete(folder)

    def ended(self, name: str, status: Status, took_s: float | None = None) -> None:
        """The executor has a cell's result."""
        work, cell_id = self._of[name]
        work.ended(cell_id, status, took_s)
        changed = [work]
        for twin, twin_id in self._twins[name]:
            if twin_id in twin.waiting and twin.take(twin_id):
                changed.append(twin)
        for one in dict.fromkeys(changed):
            if not one.waiting:
                self._finish(one)
        self._tell_finished(wait=False)

    def note(self, text: str) -> None:
        """The executor has something to say."""
        self._works[0].note(text)

    def _finish(self, work: _Work) -> None:
        """Derives what a run says of its cells, beside cells of other runs."""
        if work.stage >= Stage.FINISHING:
            return
        work.stage = Stage.FINISHING
        self._finishing.append((work, self._pool.submit(work.finish)))

    def _tell_finished(self, *, wait: bool) -> None:
        while self._finishing and (wait or self._finishing[0][1].done()):
            work, future = self._finishing[0]
            warnings = future.result()
            self._finishing.popleft()
            work.done(warnings, self._most_bytes)


class Stage(IntEnum):
    """How far a run is: `FINISHING` once all cells have results, `WHOLE` once its manifest says so."""

    PLANNED, BEGUN, RUNNING, FINISHING, WHOLE, DONE = range(6)


class _Work:
    """A run under way, in the folder whose lock this process holds."""

    def __init__(self, run: RunPlan, tell: Listener, engine: Engine) -> None:
        self.run, self.folder, self.tell, self.engine = run, run.folder, tell, engine
        if run.beside is not None and run.beside.resolve() != self.folder.path.resolve():
            self.folder.take_along(run.beside)
        self.keys = {cell_id: cell_key(plan, self.engine.hash(plan)) for cell_id, plan in run.plans.items()}
        self._check_names()
        self.manifest = self._opened(self._facts())
        self._drop_foreign_cells()
        # Whether the user's store still takes results.
        self._keeps = True
        self._told: set[str] = set()
        # The row of a cell in results.csv.
        self._row = results.Rows(run.stores[0]).row if run.options.use_cache else results.derived
        # Engines whose results can be repeated have virtual time; in the others time is real.
        is_virtual = engine.deterministic
        self.expected = {cell_id: expected(plan, in_virtual_time=is_virtual) for cell_id, plan in run.plans.items()}
        self.takes_results = run.options.use_cache and engine.deterministic
        # Cells without a result, in the order of the plans.
        self.waiting = dict.fromkeys(run.plans)
        self.stage = Stage.PLANNED
        self._began, self._unwritten = time.monotonic(), 0

    @property
    def _of_run(self) -> tuple[str, Path]:
        return self.run.scenario, self.folder.path

    def begin(self) -> None:
        """Takes the results that there are."""
        self.stage = Stage.BEGUN
        self.tell(events.RunStarted(*self._of_run, self.engine.name, tuple(self.run.plans), self.expected))
        for cell_id in self.run.plans:
            self.take(cell_id)

    def finish(self) -> list[str]:
        """Writes the manifest and the table of a run whose cells all have a result; returns warnings."""
        # The order in which cells ended must not show.
        self.manifest.cells = dict(sorted(self.manifest.cells.items()))
        self.manifest.took_s = dict(sorted(self.manifest.took_s.items()))
        self.manifest.wall_s = round(time.monotonic() - self._began, 2)
        # A run that says that it is completed has the table of all its cells, not one from before it was killed.
        warnings: list[str] = []
        if self.run.plans:
            results.collect(self.folder.path, warnings.append, self._row)
        self.manifest.status = "completed"
        self._write_manifest()
        self.stage = Stage.WHOLE
        return warnings

    def done(self, warnings: Iterable[str], most_bytes: int | None) -> None:
        """Tells the end of a run that is finished."""
        for text in warnings:
            self.note(f"warning: {text}")
        if most_bytes is not None:
            self.run.stores[0].trim(most_bytes=most_bytes)
        self.stage = Stage.DONE
        self.tell(events.RunDone(*self._of_run, self.manifest.wall_s or 0.0))

    def break_off(self, error: BaseException) -> None:
        """Keeps what a run has that is not done, and tells how it ended."""
        if self.stage in {Stage.PLANNED, Stage.DONE}:
            return
        if self.stage < Stage.WHOLE:
            if isinstance(error, KeyboardInterrupt):
                self.manifest.status = "interrupted"
            self._write_manifest()
        if isinstance(error, KeyboardInterrupt):
            self.tell(events.RunInterrupted(*self._of_run))
        elif isinstance(error, Exception):
            self.tell(events.RunFailed(*self._of_run, error))

    def result(self) -> RunResult:
        """The outcome."""
        ended = [entry["status"] for entry in self.manifest.cells.values()]
        completed, incomplete, failed = map(ended.count, ("completed", "incomplete", "failed"))
        return RunResult(self.folder.path, completed, incomplete, failed, self.run.checks)

    def started(self, cell_id: str) -> None:
        """The executor starts a cell."""
        if self.stage < Stage.RUNNING:
            self.stage, self._began = Stage.RUNNING, time.monotonic()
        self.tell(CellStarted(cell_id, self.run.scenario))

    def complete(self, folder: Path) -> None:
        """Derives the row of a cell while others run."""
        # What is wrong with a cell is told when its run's results are collected.
        with suppress(Exception):
            if self.run.options.use_cache:
                self._row(folder)

    def ended(self, cell_id: str, status: Status, took_s: float | None = None) -> None:
        """The executor has a cell's result. The run keeps it before it tells the listeners."""
        self._enter(cell_id, status)
        if took_s is not None:
            self.manifest.took_s[cell_id] = round(took_s, 3)
        self._unwritten += 1
        # Written after each cell, the manifests of a long run would be most of its work. A killed run finds cells
        # that its manifest lacks in the store, if its results are kept.
        is_kept = self.engine.deterministic
        if not is_kept or self._unwritten >= len(self.manifest.cells) * UNWRITTEN_SHARE:
            self._write_manifest()
        if is_kept and status.status in KEPT:
            self._keep(cell_id)
        if cell_id not in self._told:
            self._told.add(cell_id)
            self.tell(CellDone(cell_id, status, cached=False, scenario=self.run.scenario))

    def note(self, text: str) -> None:
        """The executor or the engine has something to say."""
        self.tell(Note(text))

    def _facts(self) -> dict[str, object]:
        """What the manifest says besides the cells."""
        run, engine = self.run, self.engine
        facts: dict[str, object] = {"scenario": run.scenario, "engine": engine.name}
        facts["engine_hashes"] = sorted({engine.hash(plan) for plan in run.plans.values()})
        facts |= {"seed": run.seed, **run.asked}
        if run.beside is not None:
            facts["origin"] = seal(self.folder.path, run.beside)
        machine = {"kernel": platform.release(), "python": platform.python_version(), "cpus": os.cpu_count()}
        facts |= {"program": program(), "machine": machine | engine.facts()}
        if engine.deterministic and (reason := not_promised(run.plans.values())):
            self.note(reason)
            facts["not_promised"] = sorted(cell_id for cell_id, plan in run.plans.items() if own_images(plan))
        return facts

    def _opened(self, facts: dict[str, object]) -> Progress:
        """The folder's manifest. A damaged one is set aside if the engine can repeat its cells, else it is an error."""
        try:
            return self.folder.open(self.run.resolved, facts, self.run.own)
        except NewerFormat:
            raise
        except ResultError as error:
            if not self.engine.deterministic:
                what = f"found a damaged manifest.json, which identified the measurements of engine {self.engine.name}"
                advice = "Move the folder away, and run the scenario again."
                raise ResultError(f"{self.folder.path}: {what}; expected a readable one. {advice}") from error
            aside = self.folder.set_aside()
            self.note(f"{aside}: set a damaged manifest aside; cells are taken from the cache or run again")
            return self.folder.open(self.run.resolved, facts, self.run.own)

    def _check_names(self) -> None:
        """Refuses a folder whose file system, such as that of Windows, takes the names of two cells for one."""
        folds = (self.folder.path / LOCK.upper()).exists()
        for one, other in pairwise(sorted(self.run.plans, key=str.casefold) if folds else ()):
            if one.casefold() == other.casefold():
                found = f"a file system that takes {other} for {one}; expected one with upper and lower case"
                raise UsageError(f"{self.folder.path}: found {found}. Choose another folder with --out.")

    def _drop_foreign_cells(self) -> None:
        """Removes cells of an interrupted write, or of an earlier state of the same scenario."""
        for folder in self.folder.cells.iterdir():
            if folder.is_symlink() or (folder.name in self.run.plans and not folder.is_dir()):
                folder.unlink()
            elif folder.is_dir() and folder.name not in self.run.plans:
                shutil.rmtree(folder)
        for listed in (self.manifest.cells, self.manifest.took_s):
            for cell_id in listed.keys() - self.run.plans.keys():
                del listed[cell_id]

    def take(self, cell_id: str) -> bool:
        """Takes a cell's result that the run folder or a store has; whether there is one that can be read."""
        entry = self.manifest.cells.get(cell_id)
        is_here = entry is not None and entry["key"] == self.keys[cell_id] and entry["status"] in KEPT
        status = self._status_of(cell_id) if is_here and self.run.options.use_cache else None
        if self.takes_results:
            for store in self.run.stores if status is None else ():
                status = status or self._fetched(store, cell_id)
        if status is None:
            return False
        self._enter(cell_id, status)
        self.tell(CellDone(cell_id, status, cached=True, scenario=self.run.scenario))
        return True

    def _fetched(self, store: Store, cell_id: str) -> Status | None:
        """The status of a cell whose result a store has; None if it has none that can be read."""
        key = self.keys[cell_id]
        try:
            if not store.fetch(key, self.folder.cell(cell_id).path):
                return None
        except ResultError as error:
            self.note(str(error))
            return None
        status = self._status_of(cell_id)
        if status is None:
            store.forget(key)
        return status

    def _status_of(self, cell_id: str) -> Status | None:
        """The status of a cell in the run folder; None if a file that results come from is missing or damaged."""
        cell, plan = self.folder.cell(cell_id), self.run.plans[cell_id]
        try:
            if not cell.has_ended:
                return None
            # A plan of the same bytes can be read, and is the cell's.
            if (content := content_of(cell.plan)) != plans.text(plan).encode():
                found = plans.parse(content).as_planned
                if found.cell.id != cell_id or (self.engine.deterministic and found != plan):
                    return None
            return cell.status()
        except (ResultError, OSError, plans.PlanError):
            return None

    def _keep(self, cell_id: str) -> None:
        """Keeps a result. Without the store, as when its disk is full, the run goes on: its own folder has all."""
        if not self._keeps:
            return
        store = self.run.stores[0]
        try:
            store.keep(self.keys[cell_id], self.folder.cell(cell_id).path)
        except OSError as error:
            self._keeps = False
            self.note(
                f"{store.root}: found {error.strerror}; expected a folder that takes results. This run goes on and "
                'keeps no more of them there. Free disk space there ("scpslab clean --results"), or set SCPSLAB_CACHE '
                "to another folder."
            )

    def _enter(self, cell_id: str, status: Status) -> None:
        self.manifest.cells[cell_id] = {"key": self.keys[cell_id], "status": status.status}
        self.waiting.pop(cell_id, None)

    def _write_manifest(self) -> None:
        self.folder.write_manifest(self.manifest)
        self._unwritten = 0


def _check_room(out: Path) -> None:
    place = next(folder for folder in (out.resolve(), *out.resolve().parents) if folder.exists())
    usage = shutil.disk_usage(place)
    if usage.free < FREE_BYTES_PER_RUN:
        room = f"{usage.free // 10**6} MB free" if usage.total else "a file system that keeps no files"
        advice = "Free disk space, or choose another folder with --out."
        raise CapabilityError(f"{out}: found {room}; expected at least {FREE_BYTES_PER_RUN // 10**6} MB. {advice}")
    if not os.access(place, os.W_OK):
        advice = "Choose another folder with --out."
        raise LabError(f"{out}: found no permission to write; expected a folder that you may write to. {advice}")


def _most_bytes() -> int | None:
    """The size up to which this machine keeps results; None: no limit."""
    try:
        return parse("size", limit) if (limit := os.environ.get(LIMIT)) else None
    except UnitError as error:
        raise UsageError(f"{LIMIT}: {error}. Correct it, or unset it.") from error
