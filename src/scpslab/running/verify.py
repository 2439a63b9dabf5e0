"""Runs the runs of an archive again and compares every byte."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scpslab.engine import ENGINES
from scpslab.errors import ResultError
from scpslab.results.archive import ArchivedRun, digests_of, read_archive
from scpslab.runfolder.run import TOPOLOGIES
from scpslab.running.events import Listener
from scpslab.running.rebuilt import contradictions
from scpslab.running.runner import PlansRun, RunOptions
from scpslab.scratch import scratch


@dataclass(frozen=True)
class Described:
    """A scenario's name and seed, from an archive."""

    name: str
    seed: int


@dataclass(frozen=True)
class Comparison:
    """A run of an archive compared with its re-run: files that are the same, differ, are missing or are new; and whether the inputs were the same.

    `contradictions` says where the archived plans are not those that the archived scenario gives; `notes` says what was taken from the archive unchecked.
    """

    run: str
    same: tuple[str, ...]
    different: tuple[str, ...]
    missing: tuple[str, ...]
    new: tuple[str, ...]
    has_same_engine: bool
    contradictions: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether every file is there with the same bytes, and no other, and the plans are those of the scenario."""
        return not (self.different or self.missing or self.new or self.contradictions)


# Every scenario of the project stays within this limit.
LONGEST_WALL_S = 3600


def verify(
    path: Path, options: RunOptions, listeners: Sequence[Listener] = (), keep: Path | None = None, longest_wall_s: int = LONGEST_WALL_S
) -> list[Comparison]:
    """Runs every plan of an archive without the result cache, in the folder `keep` or in a folder that is removed afterwards, and compares.

    No cell may ask for more than `longest_wall_s` of wall time: a stranger's cell that never ends would keep this machine busy.

    Raises:
        ResultError: the archive cannot be read, its results are measurements that no run repeats, or a cell has a longer wall limit.
        CapabilityError: this machine cannot run labs.
    """
    archived = read_archive(path)
    for run in archived:
        engine = ENGINES.get(run.digest.engine)
        if engine is None or not engine.deterministic:
            known = ", ".join(name for name, kind in ENGINES.items() if kind.deterministic)
            raise ResultError(
                f"{path}: {run.digest.run}: found engine {run.digest.engine}; expected {known}, which gives the same bytes again. Export a run of that engine."
            )
        _check_wall_limits(path, run, longest_wall_s)
    if keep is not None:
        return _all(archived, options, listeners, keep)
    with scratch() as folder:
        return _all(archived, options, listeners, folder)


def _check_wall_limits(path: Path, run: ArchivedRun, longest_wall_s: int) -> None:
    for cell_id, plan in run.plans.items():
        wall_s = plan.limits.wall_s
        if wall_s > longest_wall_s:
            raise ResultError(
                f"{path}: {run.digest.run}: cell {cell_id}: found a wall limit of {wall_s} s; expected at most {longest_wall_s} s. "
                f"If you accept that time, run: scpslab verify --wall {wall_s}"
            )


def _all(archived: Sequence[ArchivedRun], options: RunOptions, listeners: Sequence[Listener], out: Path) -> list[Comparison]:
    return [_one(run, options, listeners, out) for run in archived]


def _one(archived: ArchivedRun, options: RunOptions, listeners: Sequence[Listener], out: Path) -> Comparison:
    digest = archived.digest
    found_contradictions = tuple(contradictions(archived, is_trusted=options.trust))
    mine = RunOptions(engine=digest.engine, jobs=options.jobs, use_cache=False, out=out)
    run = PlansRun(Described(digest.scenario, digest.seed), archived.resolved, archived.plans, mine, listeners, archived.own)
    folder = run.run().folder
    found, expected = digests_of(folder), digest.files
    return Comparison(
        digest.run,
        tuple(name for name in expected if found.get(name) == expected[name]),
        tuple(name for name in expected if name in found and found[name] != expected[name]),
        tuple(name for name in expected if name not in found),
        tuple(name for name in found if name not in expected),
        _keys(run.manifest) == _keys(archived.manifest),
        found_contradictions,
        tuple(_not_run(archived)) if not options.trust else (),
    )


def _not_run(archived: ArchivedRun) -> Iterator[str]:
    for name, content in archived.own.items():
        if name != TOPOLOGIES:
            yield (
                f"its topology {name} ({len(content)} bytes of Python) was not run: the plans were compared with the networks that the archive records. "
                "To run it too, read it first, then verify with --trust"
            )


def _keys(manifest: dict[str, object]) -> dict[str, object]:
    """For each cell, the hash of everything that determines it: plan, lab program, guest image, kernel."""
    cells = manifest.get("cells")
    return {name: entry.get("key") if isinstance(entry, dict) else None for name, entry in cells.items()} if isinstance(cells, dict) else {}
