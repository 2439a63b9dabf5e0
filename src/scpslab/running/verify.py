"""Runs the runs of an archive, or some cells of a run folder, again and compares every byte."""

import hashlib
import hmac
import io
import json
import math
import re
import secrets
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from scpslab import plan as plans
from scpslab import scenario
from scpslab.analysis.collect import derived, rows_as_csv
from scpslab.analysis.run import cell_folders
from scpslab.core.contents import check_sizes
from scpslab.core.errors import LimitError, ResultError, ScenarioError, UsageError
from scpslab.core.folders import TOPOLOGIES
from scpslab.core.limited import WorkLimits, limited
from scpslab.core.names import shown
from scpslab.core.scratch import scratch
from scpslab.engine import ENGINES
from scpslab.engine.base import not_promised
from scpslab.plan import Plan
from scpslab.plan.schema import shown as shown_value
from scpslab.running.events import Listener
from scpslab.running.run_plan import LARGEST_VECTOR, RunOptions, RunPlan, stored_of
from scpslab.running.runner import execute
from scpslab.runs import RunFolder
from scpslab.runs.archive import EXPECTED, OWN_TOPOLOGY, ArchivedRun, digests_of, read_archive, write_archive
from scpslab.runs.run import CELLS, RESOLVED, RESULTS, VECTORS, Manifest, Program
from scpslab.scenario import planning
from scpslab.scenario.errors import RULES
from scpslab.scenario.recorded import Recorded
from scpslab.scenario.stored import of_a_run
from scpslab.scenario.topologies import NoOwn, OnDisk, Topologies, TopologyError
from scpslab.setup.packs import keep_programs


def shuffled(items: Iterable[tuple[str, ...]], key: bytes, context: str = "") -> list[tuple[str, ...]]:
    """The items in an order that depends on a key and a context alone."""
    return sorted(items, key=lambda item: hmac.digest(key, json.dumps([context, *item]).encode(), hashlib.sha256))


@dataclass(frozen=True)
class Sample:
    """How many cells are taken: a share of them, or a number."""

    share: float | None
    number: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """The sample that a person writes as "5%" or "12".

        Raises:
            UsageError: it is none.
        """
        found = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,6})?) ?(%?)", text.strip(), re.ASCII)
        value = float(found[1]) if found else 0.0
        is_share = bool(found and found[2])
        if value <= 0 or (is_share and value > 100) or not (is_share or value.is_integer()):
            expected = "expected a share or a number of cells, such as 5% or 12. Correct it."
            raise UsageError(f'--sample: found "{text[:40]}"; {expected}')
        return cls(value / 100, 0) if is_share else cls(None, int(value))

    def of(self, cells: Sequence[str], key: bytes) -> list[str]:
        """The cells drawn with a key, at least one, in the order in which they are given."""
        count = math.ceil(self.share * len(cells)) if self.share is not None else self.number
        drawn = {cell for (cell,) in shuffled(((cell,) for cell in cells), key)[:count]}
        return [cell for cell in cells if cell in drawn]


@dataclass(frozen=True)
class Verification:
    """A run of an archive compared with its re-run: files that are the same, differ, are missing or are new; and
    whether the inputs were the same.

    `contradictions` says where the archived plans are not those that the archived scenario gives; `notes` says what was
    taken from the archive unchecked; `because` says why it need not have the same bytes: rules of today that it could
    not follow, or programs that no run repeats. `cells` are those that were run again, of `of`.
    """

    run: str
    same: tuple[str, ...]
    different: tuple[str, ...]
    missing: tuple[str, ...]
    new: tuple[str, ...]
    has_same_engine: bool
    contradictions: tuple[str, ...]
    notes: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    of: int = 0
    because: str = ""

    @property
    def is_same(self) -> bool:
        """Whether every file is there with the same bytes, and no other, and the plans are those of the scenario."""
        return not (self.different or self.missing or self.new or self.contradictions)


# What an archive may take before its first cell runs: 512 MiB, 64 of which libraries may have mapped already, and a
# processor's time for so many bytes of it.
MEMORY_BYTES, CPU_S, CPU_BYTES, WALL_S = 448 << 20, 60, 10 * 10**6, 3600
# Every scenario of the project stays within this limit.
LONGEST_WALL_S = 3600


def verify(
    path: Path,
    options: RunOptions,
    listeners: Sequence[Listener] = (),
    keep: Path | None = None,
    longest_wall_s: int = LONGEST_WALL_S,
    sample: Sample | None = None,
) -> list[Verification]:
    """Runs every plan of an archive or run folder, or a sample of its cells, without the result cache, and compares.

    The re-run is in the folder `keep`, or in a folder that is removed afterwards.

    No cell may ask for more than `longest_wall_s` of wall time: a stranger's cell that never ends would keep this
    machine busy.

    Raises:
        ResultError: the archive cannot be read, its results are measurements that no run repeats, or a cell has a
            longer wall limit.
        UsageError: `keep` has a folder of the run already, which may be the one that is verified.
        CapabilityError: this machine cannot run labs.
    """
    # A third each of the time: to see in a child that the archive can be read, to read it here, and to plan its
    # scenarios again in a child.
    if path.is_dir():
        check_sizes(path)
    size = sum(file.lstat().st_size for file in path.rglob("*")) if path.is_dir() else path.stat().st_size
    limits = WorkLimits(memory_bytes=MEMORY_BYTES, cpu_s=CPU_S / 3 * max(1, size / CPU_BYTES), wall_s=WALL_S)
    _within(path, limits, lambda: len(_read(path, longest_wall_s)))
    archived = _read(path, longest_wall_s)
    found = _within(path, limits, lambda: [contradictions(run, is_trusted=options.trust) for run in archived])
    folder = path if path.is_dir() else None
    with scratch() if keep is None else nullcontext(keep) as out:
        again = [_again(run, sample, options, out) for run in archived]
        for there in (run.folder.path for run in again if run.folder.path.exists()):
            raise UsageError(f"{there}: found a folder; expected none yet. Choose another folder with --keep.")
        each = zip(archived, again, found, strict=True)
        return [_one(run, plan, listeners, folder, wrong, options) for run, plan, wrong in each]


def _again(archived: ArchivedRun, sample: Sample | None, options: RunOptions, out: Path) -> RunPlan:
    """An archive's run, or a sample of its cells, as it is run again."""
    digest, plans = archived.digest, archived.plans
    chosen = sample.of(list(plans), secrets.token_bytes(32)) if sample else plans
    mine = RunOptions(engine=digest.engine, jobs=options.jobs, use_cache=False, out=out)
    return RunPlan(
        digest.scenario, digest.seed, archived.resolved, {cell: plans[cell] for cell in chosen}, mine, archived.own
    )


def _within(path: Path, limits: WorkLimits, work: Callable[[], Any]) -> Any:
    """What `work` finds of an archive, in a child with limits: whoever wrote it chose how much there is to read and to
    plan.
    """
    try:
        return limited(work, limits)
    except LimitError as error:
        advice = "Ask for a smaller one, or one for each run."
        raise ResultError(f"{path}: {error}; expected an archive that can be read within that. {advice}") from error


def _read(path: Path, longest_wall_s: int) -> list[ArchivedRun]:
    archived = [_of_folder(path)] if path.is_dir() else read_archive(path)
    for run in archived:
        engine = ENGINES.get(run.digest.engine)
        if engine is None or not engine.deterministic:
            known = ", ".join(name for name, kind in ENGINES.items() if kind.deterministic)
            expected = f"expected {known}, which gives the same bytes again. Export a run of that engine."
            raise ResultError(f"{path}: {run.digest.run}: found engine {run.digest.engine}; {expected}")
        _check_wall_limits(path, run, longest_wall_s)
        _check_vectors(path, run)
    return archived


def _of_folder(folder: Path) -> ArchivedRun:
    """A run folder as its archive has it."""
    with scratch() as place:
        return read_archive(write_archive([folder.resolve()], place / folder.resolve().name))[0]


def _check_wall_limits(path: Path, run: ArchivedRun, longest_wall_s: int) -> None:
    for cell_id, plan in run.plans.items():
        wall_s = plan.cell.limits.wall_s
        if wall_s > longest_wall_s:
            found, advice = f"found a wall limit of {wall_s} s", f"run: scpslab verify --max-wall {wall_s}"
            expected = f"expected at most {longest_wall_s} s. If you accept that time, {advice}"
            raise ResultError(f"{path}: {run.digest.run}: cell {cell_id}: {found}; {expected}")


def _check_vectors(path: Path, run: ArchivedRun) -> None:
    for file, sha256 in stored_of(run.plans.values()):
        if f"{VECTORS}/{sha256}" not in run.own:
            raise ResultError(
                f"{path}: {run.digest.run}: found the stored error vector {shown(Path(file).name)} without its "
                "content; expected an archive that has it. Run the scenario again, with a vector of at most "
                f"{LARGEST_VECTOR >> 20} MiB, and export that run."
            )


def _one(
    archived: ArchivedRun,
    run: RunPlan,
    listeners: Sequence[Listener],
    folder: Path | None,
    found_contradictions: Sequence[str],
    options: RunOptions,
) -> Verification:
    """`folder`: where the run is, if it is not in an archive; its results.csv is then derived again too."""
    digest, chosen = archived.digest, tuple(run.plans)
    for sha256, content in _programs(archived).items():
        if keep_programs(content) != sha256:
            raise ResultError(f"{digest.run}: found other programs than the plans name; {EXPECTED}")
    with stored_vectors(archived):
        again = execute(run, listeners).folder
    found, expected = digests_of(again), digest.files
    if len(chosen) < len(archived.plans):
        found.pop(RESULTS)
        # Folders of cells have the cells' names.
        expected = {
            name: value
            for name, value in expected.items()
            if name.startswith(f"{CELLS}/") and name.split("/")[1] in chosen
        }
        if folder is not None:
            expected[RESULTS] = digest.files[RESULTS]
            found[RESULTS] = hashlib.sha256(rows_as_csv(map(derived, cell_folders(folder))).encode()).hexdigest()
    return Verification(
        digest.run,
        tuple(name for name in expected if found.get(name) == expected[name]),
        tuple(name for name in expected if name in found and found[name] != expected[name]),
        tuple(name for name in expected if name not in found),
        tuple(name for name in found if name not in expected),
        _keys(RunFolder(again).manifest(), chosen) == _keys(archived.manifest, chosen),
        tuple(found_contradictions),
        tuple(_not_run(archived)) if not options.trust else (),
        chosen,
        len(archived.plans),
        other_rules(archived.manifest.program) or not_promised(run.plans.values()),
    )


def other_rules(program: Program | None) -> str:
    """Why a run cannot have the bytes of one of today, if its scpslab went by other rules; "" otherwise."""
    if program is not None and program.rules == RULES:
        return ""
    made_with = shown((program and program.version) or "an older version")[1:-1]
    return f"made with {made_with}, whose cells have other bytes: install that to verify or grade it, or run again"


def _not_run(archived: ArchivedRun) -> Iterator[str]:
    for name, content in archived.own.items():
        if name.endswith(OWN_TOPOLOGY):
            yield (
                f"its topology {name} ({len(content)} bytes of Python) was not run: the plans were compared with the "
                "networks that the archive records. To run it too, read it first, then verify with --trust"
            )


def _keys(manifest: Manifest, chosen: Sequence[str]) -> list[str | None]:
    """For each chosen cell, the hash of everything that determines it: plan, lab program, guest image, kernel."""
    return [manifest.cells[cell]["key"] if cell in manifest.cells else None for cell in chosen]


def contradictions(run: ArchivedRun, *, is_trusted: bool = False) -> list[str]:
    """Where the archived plans are not those that the archived scenario gives, one line each.

    Networks of own topologies are those that the archive records; only `is_trusted` runs the topologies' files, which
    are the archive's. Nothing but new files of a scratch folder is written, and no file is opened that a plan or the
    scenario names by its path.
    """
    with scratch() as folder, stored_vectors(run):
        file = folder / "scenario.yaml"
        file.write_text(run.resolved, encoding="utf-8")
        try:
            topologies = _topologies(run, folder, is_trusted=is_trusted)
            _lend_policies(run, folder)
            _lend_programs(run, folder)
            loaded = scenario.load(str(file), topologies=topologies)
            # The scenario's name is its file's name; the archived run knows the name of then.
            named = replace(loaded, base_name=next(iter(run.plans.values())).cell.scenario)
            given = planning.plans(scenario.cells(named))
        except (ScenarioError, TopologyError) as error:
            said = str(error).replace(str(file), f"{run.digest.run}/{RESOLVED}")
            return [f"the scenario cannot be planned: {line}" for line in said.splitlines()]
    return list(_differences(given, run.plans))


def _topologies(run: ArchivedRun, folder: Path, *, is_trusted: bool) -> Topologies:
    if is_trusted:
        for name, content in run.own.items():
            if name.endswith(OWN_TOPOLOGY):
                _write_new(folder / name, content)
        return OnDisk(is_trusted=True)
    return Recorded(run.own[TOPOLOGIES]) if TOPOLOGIES in run.own else NoOwn()


def _differences(given: dict[str, Plan], archived: dict[str, Plan]) -> Iterator[str]:
    for cell_id in (*archived, *(name for name in given if name not in archived)):
        if cell_id not in given or cell_id not in archived:
            yield (
                f"cell {cell_id}: found {'a plan' if cell_id in archived else 'no plan'}; "
                f"the scenario gives {'none' if cell_id in archived else 'one'}"
            )
        elif found := _first_difference(plans.write(archived[cell_id]), plans.write(given[cell_id])):
            yield f"cell {cell_id}: {found}"


def _first_difference(archived: Any, given: Any, at: str = "") -> str:
    """The first place where two JSON values differ, with both values; "" if there is none."""
    if archived == given:
        return ""
    if isinstance(archived, dict) and isinstance(given, dict):
        keys = dict.fromkeys((*archived, *given))
        parts = [(archived.get(key), given.get(key), f"{at}.{key}" if at else key) for key in keys]
    elif isinstance(archived, list) and isinstance(given, list) and len(archived) == len(given):
        parts = [(*pair, f"{at}[{index}]") for index, pair in enumerate(zip(archived, given, strict=True))]
    else:
        return f"{at}: found {shown_value(archived)}; the scenario gives {shown_value(given)}"
    return next(filter(None, (_first_difference(*part) for part in parts)), "")


@contextmanager
def stored_vectors(run: ArchivedRun) -> Iterator[None]:
    """Makes the run's stored error vectors those of all plans: a plan names them by paths of the machine that made
    it.
    """
    contents = {
        name.removeprefix(f"{VECTORS}/"): content for name, content in run.own.items() if name.startswith(f"{VECTORS}/")
    }
    with of_a_run(stored_of(run.plans.values()), contents):
        yield


def _lend_policies(run: ArchivedRun, folder: Path) -> None:
    """Puts the policies where the scenario names them: plans hold their text."""
    for workload in (workload for plan in run.plans.values() for workload in plan.cell.workloads):
        for name, text in workload.files.items():
            _write_new(folder / name, text.encode())


def _programs(run: ArchivedRun) -> dict[str, bytes]:
    """The tars of the user's programs in an archive, by the SHA-256 that plans name."""
    named = {plan.network.pack.programs for plan in run.plans.values() if plan.network.pack} - {None}
    found = {sha256: run.own.get(f"{VECTORS}/{sha256}") for sha256 in sorted(filter(None, named))}
    return {sha256: content for sha256, content in found.items() if content is not None}


def _lend_programs(run: ArchivedRun, folder: Path) -> None:
    """Puts the programs where the scenario names them. Several folders stand in cells alone, and are not compared."""
    name = re.search(r"^programs: ([A-Za-z0-9_][A-Za-z0-9._-]*)$", run.resolved, re.MULTILINE | re.ASCII)
    contents = list(_programs(run).values())
    if name and len(contents) == 1:
        with tarfile.open(fileobj=io.BytesIO(contents[0])) as tar:
            tar.extractall(folder / name[1], filter="data")


def _write_new(path: Path, content: bytes) -> None:
    """Writes a file that is not there yet, also not as a link to nowhere. One that is there stays."""
    with suppress(FileExistsError), path.open("xb") as file:
        file.write(content)
