"""What a run will do, as a value: its cells with their plans, its folder, and what its manifest says.

Nothing is run.
"""

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from scpslab import scenario
from scpslab.analysis import checks
from scpslab.core.errors import UsageError
from scpslab.core.installation import commit, version
from scpslab.engine import DEFAULT
from scpslab.plan import Plan
from scpslab.running.dask import DaskExecutor
from scpslab.running.executors import Executor, LocalExecutor
from scpslab.runs import RunFolder
from scpslab.runs.run import RUNS, VECTORS
from scpslab.runs.store import Store, stores
from scpslab.scenario import planning
from scpslab.scenario.errors import RULES
from scpslab.scenario.model import Check
from scpslab.scenario.packs import packed
from scpslab.scenario.stored import Stored, content
from scpslab.scenario.topologies import OnDisk
from scpslab.setup.packs import keep_programs

# Larger vectors stay where they are, and their runs cannot be verified: whoever reads an archive has all of it in
# memory.
LARGEST_VECTOR = 1 << 22


@dataclass(frozen=True)
class RunOptions:
    """Options of this machine and this run, not of the experiment."""

    engine: str = DEFAULT
    jobs: int | None = None
    # The scheduler whose workers run the cells; None: this machine does.
    cluster: str | None = None
    use_cache: bool = True
    snapshots: bool = True
    out: Path = RUNS
    overrides: list[str] = field(default_factory=list)
    trust: bool = False

    def __post_init__(self) -> None:
        if not str(self.out).isprintable():
            problem = "found characters that cannot be printed; expected a folder without them. Choose another one."
            raise UsageError(f"--out {str(self.out)!a}: {problem}")
        # An executor that this machine cannot have is refused before anything is planned.
        self.made_executor()

    def made_executor(self) -> Executor:
        """What carries out the cells.

        Raises:
            UsageError: the cluster is no address, or open to everybody.
            CapabilityError: this machine lacks what the executor needs.
        """
        return LocalExecutor(self.jobs) if self.cluster is None else DaskExecutor(self.jobs, self.cluster)


@dataclass(frozen=True)
class RunPlan:
    """A run before it is carried out.

    `plans`: the plan of each cell; `own`: further files on which the plans depend, by name. `asked`: what the manifest
    says of who asked for the run; plans from an archive have no command of their own. `beside`: the folder of the
    user's own scenario, from which recipes of figures and claims are taken along.
    """

    scenario: str
    seed: int
    resolved: str
    plans: Mapping[str, Plan]
    options: RunOptions
    own: Mapping[str, bytes] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    warnings: tuple[str, ...] = ()
    asked: Mapping[str, object] = field(default_factory=dict)
    beside: Path | None = None
    stores: tuple[Store, ...] = field(default_factory=stores)

    @cached_property
    def name(self) -> str:
        """The name of the run: the same for the same plans on the same engine."""
        return RunFolder.name_of(self.scenario, self.resolved, self.options.engine, self.own)

    @property
    def folder(self) -> RunFolder:
        """Where the results come."""
        return RunFolder(self.options.out / self.name)


def plan_run(name: str, options: RunOptions) -> RunPlan:
    """Plans a run of a scenario (path or name, with or without a variant).

    Raises:
        ScenarioError: the scenario is not valid.
    """
    loaded = scenario.load(name, options.overrides, OnDisk(is_trusted=options.trust))
    cells = scenario.cells(loaded)
    plans = planning.plans(cells)
    if wrong := list(checks.misfits(loaded.model, plans.values())):
        raise loaded.places.error(wrong)
    own = scenario.own_files(loaded, cells)
    run = RunPlan(
        loaded.name,
        loaded.seed,
        scenario.resolved_yaml(loaded, own.renamed),
        plans,
        options,
        own={**own.contents, **_vectors(plans), **_programs(cells)},
        checks=loaded.model.checks,
        warnings=(*planning.warnings(plans, loaded.places.of(("sweep",))), *planning.doubts(cells, plans)),
        asked=asked(name, options),
    )
    if loaded.is_of_project:
        return run
    place = os.path.relpath(loaded.path.resolve(), run.folder.path.resolve())
    beside, warnings = loaded.path.parent, (*run.warnings, *checks.idle_recipes(loaded.path, scenario.names()))
    facts = {**run.asked, "file": place, "evidence": loaded.is_evidence}
    return replace(run, asked=facts, beside=beside, warnings=warnings)


def asked(name: str, options: RunOptions) -> dict[str, object]:
    """What a manifest says of who asked for a run or campaign."""
    return {"command": command(name, options.engine, options.overrides), "settings": list(options.overrides)}


def command(name: str, engine: str, overrides: Sequence[str]) -> str:
    """The command that plans the same cells on the same engine, quoted for a shell."""
    of_engine = [] if engine == DEFAULT else ["--engine", engine]
    return shlex.join(["scpslab", "run", name, *of_engine, *(word for text in overrides for word in ("--set", text))])


def program() -> dict[str, object]:
    """The version of the program, the commit of its clone, and whether its files differ from that commit; None: no
    clone.
    """
    clone = commit()
    of_clone = {"commit": clone.id if clone else None, "changed": clone.changed if clone else None}
    return {"version": version(), **of_clone, "vectors": RULES}


def stored_of(of: Iterable[Plan]) -> list[Stored]:
    """What plans say of stored error vectors and tables of profiles."""
    impairments = [impairment for plan in of for impairment in plan.cell.impairments]
    every = [one.errors.settings.stored_file for one in impairments if one.errors is not None]
    every += [one.profile.stored_file for one in impairments if one.profile is not None]
    return list(dict.fromkeys(one for one in every if one is not None))


def _programs(cells: Iterable[scenario.Cell]) -> dict[str, bytes]:
    """The user's programs, each a tar, as a run folder takes them along; engines take them from the cache."""
    folders = {cell.scenario.path.parent / cell.model.programs for cell in cells if cell.model.programs is not None}
    contents = {f"{VECTORS}/{keep_programs(content)}": content for content in map(packed, sorted(folders))}
    return {name: content for name, content in contents.items() if len(content) <= LARGEST_VECTOR}


def _vectors(plans: Mapping[str, Plan]) -> dict[str, bytes]:
    """The stored files of plans, as a run folder takes them along: with them anybody can run the plans again."""
    vectors = {f"{VECTORS}/{sha256}": content((file, sha256)) for file, sha256 in stored_of(plans.values())}
    return {name: content for name, content in sorted(vectors.items()) if len(content) <= LARGEST_VECTOR}
