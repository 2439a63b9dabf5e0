"""The folders of runs and campaigns (docs/results.md): their files, the manifest, and campaign.json with its links;
their lock, which the kernel releases however its process ends; and the folders that a person names.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypedDict

from scpslab.core import strict_json
from scpslab.core.contents import check_sizes, content_of
from scpslab.core.errors import ResultError, UsageError
from scpslab.core.folders import TOPOLOGIES, is_own, own_folder
from scpslab.core.names import UNFINISHED, file_label, file_name
from scpslab.core.scratch import replace_bytes, replace_text
from scpslab.core.strict_json import JsonObject, count, items, number, section, text
from scpslab.runs.cell import AGAIN, FORMAT, PLAN, CellFiles, check_format, json_object
from scpslab.runs.origin import is_sealed

# Where runs are, if nobody names another folder.
RUNS = Path("runs")
MANIFEST = "manifest.json"
CAMPAIGN = "campaign.json"
RESOLVED = "scenario.resolved.yaml"
RESULTS = "results.csv"
REPORT = "report.html"
LOCK = ".lock"
CELLS = "cells"
FIGURES = "figures"
CLAIMS = "claims"
# Stored error vectors of the run's plans, by their SHA-256.
VECTORS = "vectors"
# The SHA-256 of each recipe and file of claims that a run has copied from beside its scenario.
TAKEN = "taken.json"
# A bound for the seconds of a cell: a year.
MOST_S = 366 * 86_400
# The largest file that is copied from beside a scenario of the user's own.
LARGEST_OWN = 1 << 20


class CellEntry(TypedDict):
    """What a manifest says of a cell: the key of its result, and how it ended."""

    key: str
    status: str


@dataclass(frozen=True)
class Program:
    """The scpslab that made a run: its version, its commit and whether files were changed, the rules of its cells
    (`vectors` in manifests).
    """

    version: str | None
    commit: str | None
    is_changed: bool
    rules: int | None

    @classmethod
    def of(cls, fields: JsonObject) -> Self:
        """The program in a manifest."""
        changed = bool(fields.get("changed"))
        return cls(text(fields, "version"), text(fields, "commit"), changed, count(fields, "vectors"))


@dataclass(frozen=True)
class Manifest:
    """What manifest.json says (docs/results.md). It may be a stranger's: a value of another kind than a run writes
    counts as not said.

    `took_s`: on the wall clock, by cell; a cell that was taken from a store has none. `file`: the path from the run
    folder to a scenario of the user's own. `origin`: the seal of that folder (runs/origin.py).
    """

    status: str | None = None
    scenario: str | None = None
    engine: str | None = None
    engine_hashes: list[str] = field(default_factory=list)
    seed: int | None = None
    command: str | None = None
    settings: tuple[str, ...] = ()
    program: Program | None = None
    file: str | None = None
    origin: str | None = None
    evidence: bool | None = None
    cells: Mapping[str, CellEntry] = field(default_factory=dict)
    took_s: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, fields: JsonObject) -> Self:
        """The manifest in a file's JSON."""
        cells, took_s = section(fields, "cells"), section(fields, "took_s")
        entries = {cell: _entry(section(cells, cell)) for cell in cells}
        times = {cell: number(took_s, cell) for cell in took_s}
        return cls(
            status=text(fields, "status"),
            scenario=text(fields, "scenario"),
            engine=text(fields, "engine"),
            engine_hashes=items(fields, "engine_hashes", str),
            seed=count(fields, "seed"),
            command=text(fields, "command"),
            settings=tuple(items(fields, "settings", str)),
            program=Program.of(section(fields, "program")) if section(fields, "program") else None,
            file=text(fields, "file"),
            origin=text(fields, "origin"),
            evidence=fields["evidence"] is True if "evidence" in fields else None,
            cells={cell: entry for cell, entry in entries.items() if entry},
            took_s={cell: time_s for cell, time_s in times.items() if time_s is not None and 0 <= time_s < MOST_S},
        )


def _entry(fields: JsonObject) -> CellEntry | None:
    key, status = text(fields, "key"), text(fields, "status")
    return None if key is None or status is None else {"key": key, "status": status}


@dataclass
class Progress:
    """What the manifest of a run says while the run is carried out: facts, and the cells that have ended so far."""

    facts: Mapping[str, object]
    cells: dict[str, CellEntry]
    took_s: dict[str, float]
    status: str = "running"
    wall_s: float | None = None

    def text(self) -> str:
        """The file's content."""
        head = {"format": FORMAT, "status": self.status, **self.facts}
        end = {} if self.wall_s is None else {"wall_s": self.wall_s}
        return json.dumps({**head, "cells": self.cells, "took_s": self.took_s, **end}, indent=1) + "\n"


@dataclass(frozen=True)
class Campaign:
    """What campaign.json says. `runs`: paths from the campaign's folder; `left_out`: patterns that no scenario has."""

    title: str
    status: str
    runs: tuple[str, ...]
    left_out: tuple[str, ...]
    command: str | None


class RunFolder:
    """`runs/<scenario>-<hash>/`: the same scenario on the same engine has the same folder, so repeating the command
    resumes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest_file, self.resolved, self.results = path / MANIFEST, path / RESOLVED, path / RESULTS
        self.cells, self.figures = path / CELLS, path / FIGURES

    @staticmethod
    def name_of(scenario: str, resolved_yaml: str, engine: str, own: Mapping[str, bytes] | None = None) -> str:
        """The name for a resolved scenario on an engine.

        `own`: further files on which its plans depend, by name; a change of one makes another name.
        """
        digest = hashlib.sha256(f"{engine}\n{resolved_yaml}".encode())
        for name, content in sorted((own or {}).items()):
            digest.update(f"\0{name}\0".encode() + content)
        return file_name(file_label(scenario), digest.hexdigest()[:8])

    @classmethod
    def all_in(cls, parent: Path) -> list[RunFolder]:
        """Every folder with a manifest, in no order."""
        return [cls(path.parent) for path in parent.glob(f"*/{MANIFEST}")]

    def cell(self, cell_id: str) -> CellFiles:
        """The folder of a cell, whether it exists or not."""
        return CellFiles(self.cells / file_name(cell_id))

    def planned_cells(self) -> list[CellFiles]:
        """The names of the cells that exist: those with a plan."""
        folders = sorted(self.cells.iterdir()) if self.cells.is_dir() else []
        return [cell for cell in map(CellFiles, folders) if cell.plan.is_file()]

    def unfinished_cells(self) -> list[Path]:
        """The folders of unfinished cells that an ended process has left."""
        return sorted(self.cells.glob(f"*{UNFINISHED}"))

    def beside(self) -> Path:
        """The folder of the scenario that was run, with the user's own files in it; the run's own folder, which has
        copies, where that scenario has gone, or the run is not known to be this user's.
        """
        try:
            manifest = Manifest.of(json_object(self.manifest_file))
        except ResultError:
            return self.path
        if manifest.file is None or "\0" in manifest.file:
            return self.path
        file = self.path / manifest.file
        is_mine = is_sealed(self.path, file.parent, manifest.origin)
        return file.parent if is_mine and file.is_file() else self.path

    def take_along(self, folder: Path) -> None:
        """Copies figure recipes and claims from the folder of a scenario; copies of files that have gone from there are
        removed, as are links. What the user has put into the run's folder, or changed there, stays.
        """
        record = self.path / TAKEN
        taken = json_object(record) if record.is_file() and not record.is_symlink() else {}
        for kind in (FIGURES, CLAIMS):
            files = sorted((folder / kind).glob("*.yaml"))
            own = {path.name: path for path in files if is_own(folder, path) and path.stat().st_size <= LARGEST_OWN}
            place = self.path / kind
            if own or place.is_symlink():
                own_folder(place)
            for old in place.glob("*.yaml"):
                if old.is_symlink():
                    old.unlink()
                    continue
                at, digest = f"{kind}/{old.name}", hashlib.sha256(content_of(old)).hexdigest()
                if taken.get(at) != digest:
                    own.pop(old.name, None)
                elif old.name not in own:
                    del taken[at]
                    old.unlink()
            for name, path in own.items():
                content = path.read_bytes()
                taken[f"{kind}/{name}"] = hashlib.sha256(content).hexdigest()
                replace_bytes(place / name, content)
        if taken:
            replace_bytes(record, f"{json.dumps(taken, indent=1, sort_keys=True)}\n".encode())

    def own_files(self) -> list[Path]:
        """What a user had beside the scenario: topologies and their record, error vectors, recipes of figures, claims.

        Nothing that a link leads out to.
        """
        patterns = (TOPOLOGIES, "*.py", f"{FIGURES}/*.yaml", f"{CLAIMS}/*.yaml", f"{VECTORS}/*")
        return sorted(path for one in patterns for path in self.path.glob(one) if is_own(self.path, path))

    def is_run(self) -> bool:
        """Whether there is a manifest and at least one cell.

        An interrupted campaign may have started no cell of a run.
        """
        return self.manifest_file.is_file() and any(self.cells.glob(f"*/{PLAN}"))

    def has_results(self) -> bool:
        """Whether at least one cell has ended."""
        return any(
            cell.status_file.is_file() for cell in self.planned_cells() if not cell.path.name.endswith(UNFINISHED)
        )

    def open(self, resolved_yaml: str, facts: Mapping[str, object], own: Mapping[str, bytes] | None = None) -> Progress:
        """Opens the folder, whose lock the caller holds; writes and returns what the manifest says, with the cells that
        the folder already has. `own`: see `name_of`.

        Raises:
            ResultError: the manifest is damaged, or a newer program wrote it.
            UsageError: a folder in it is a link.
        """
        own_folder(self.cells)
        known = self.manifest() if self.manifest_file.exists() else Manifest()
        progress = Progress(facts, dict(known.cells), dict(known.took_s))
        for name, content in (own or {}).items():
            own_folder((self.path / name).parent)
            replace_bytes(self.path / name, content)
        replace_text(self.resolved, resolved_yaml)
        self.write_manifest(progress)
        return progress

    def set_aside(self) -> Path:
        """Renames a manifest that cannot be read."""
        return self.manifest_file.replace(self.manifest_file.with_name(f"{MANIFEST}.damaged"))

    def manifest(self) -> Manifest:
        """The manifest.

        Raises:
            ResultError: there is none, or it cannot be read.
        """
        if not self.manifest_file.is_file():
            raise ResultError(
                f'{self.path}: found no {MANIFEST}; expected a run folder as "scpslab run" writes it. '
                "Choose another folder."
            )
        fields = json_object(self.manifest_file)
        check_format(self.manifest_file, fields.get("format", FORMAT))
        if not isinstance(cells := fields.get("cells", {}), dict):
            raise ResultError(f"{self.manifest_file}: cells: found {type(cells).__name__}; expected an object. {AGAIN}")
        return Manifest.of(fields)

    def write_manifest(self, progress: Progress) -> None:
        """Replaces the manifest in one step."""
        replace_text(self.manifest_file, progress.text())


class CampaignFolder:
    """A folder that links to runs and holds no cells of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path / CAMPAIGN

    def read(self) -> Campaign:
        """The content of campaign.json.

        Raises:
            ResultError: campaign.json cannot be read.
        """
        fields = json_object(self.file)
        check_format(self.file, fields.get("format", FORMAT))
        title, status = text(fields, "title"), text(fields, "status")
        runs = [path for entry in items(fields, "runs", dict) if (path := text(entry, "run")) is not None]
        left_out = items(fields, "left_out", str)
        is_whole = [len(runs), len(left_out)] == [_length(fields.get("runs")), _length(fields.get("left_out", []))]
        if title is None or status is None or text(fields, "campaign") is None or not is_whole:
            expected = (
                "expected campaign, title, status, runs and left_out. Run the campaign again: it writes the file anew."
            )
            raise ResultError(f"{self.file}: found no campaign; {expected}")
        return Campaign(title, status, tuple(runs), tuple(left_out), text(fields, "command"))

    def runs(self) -> list[RunFolder]:
        """The folders of the runs, in the campaign's order, whether they exist or not.

        Raises:
            ResultError: campaign.json cannot be read.
        """
        return [RunFolder(self.path / run) for run in self.read().runs]

    def path_of(self, run: RunFolder) -> str:
        """The path to a run from here, as campaign.json has it."""
        return os.path.relpath(run.path, self.path)

    def write(self, fields: Mapping[str, object], runs: Iterable[RunFolder]) -> None:
        """Replaces campaign.json in one step, and makes the links that are missing."""
        self.path.mkdir(parents=True, exist_ok=True)
        for run in runs:
            link = self.path / run.path.name
            if not link.is_symlink():
                link.symlink_to(self.path_of(run))
        replace_text(self.file, json.dumps({"format": FORMAT, **fields}, indent=1) + "\n")


def _length(value: object) -> int | None:
    return len(value) if isinstance(value, list) else None


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Holds the lock of a run or campaign folder. A missing folder is made.

    Raises:
        UsageError: another process holds it; the message says which.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # Programs that the run starts do not inherit the lock: it ends with this process, not with theirs.
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(f"{folder}: found {_holder(descriptor)}, or choose another folder with --out.") from error
        os.ftruncate(descriptor, 0)
        holder = {"pid": os.getpid(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
        os.pwrite(descriptor, f"{json.dumps(holder)}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> str:
    """Who holds the lock, as they wrote it, and what to do; they may be writing at this moment."""
    expected = "expected one run at a time in a folder. Wait until it ends"
    try:
        fields = strict_json.loads(os.pread(descriptor, 4096, 0))
    except strict_json.JsonError:
        fields = None
    pid, since = (fields.get("pid"), fields.get("since")) if isinstance(fields, dict) else (None, None)
    if not isinstance(pid, int) or not isinstance(since, str) or not since.isprintable():
        return f"another run at work in it; {expected}"
    return f'process {pid}, which has run in it since {since}; {expected}, end it with "kill {pid}"'


def find_run(named: str, runs: Path = RUNS) -> Path:
    """The run or campaign folder that `named` means: a folder, the name of one under `runs`, or "last" for the newest
    under `runs` with a finished cell.

    Raises:
        ResultError: there is none, or a file in it is larger than any of a run.
    """
    folder = _find(named, runs)
    for run in _members(folder):
        check_sizes(run.path)
    return folder


def _find(named: str, runs: Path) -> Path:
    if named == "last":
        marks = [mark for name in (MANIFEST, CAMPAIGN) for mark in runs.glob(f"*/{name}")] if runs.is_dir() else []
        newest = sorted(marks, key=lambda mark: (mark.stat().st_mtime_ns, mark.parent.name), reverse=True)
        for folder in (mark.parent for mark in newest):
            if any(run.has_results() for run in _members(folder)):
                return folder
        raise ResultError(
            f'{runs}: found no run with a finished cell; expected one. Run a scenario first: "scpslab run SCENARIO".'
        )
    for folder in (Path(named), runs / named):
        if folder.is_dir():
            return folder
    raise ResultError(
        f'{named}: found no such folder; expected a run folder, its name under {runs}/, or the word "last". '
        "Correct the name."
    )


def runs_of(named: Sequence[str], runs: Path = RUNS) -> list[Path]:
    """The run folders that the words name, newest first, each once.

    No words name all runs under `runs`; a campaign names the runs that it lists.

    Raises:
        ResultError: a word does not name a run. A run without cells is left out, because it or its campaign may have
            been interrupted.
    """
    folders = [find_run(word, runs) for word in named] if named else [run.path for run in RunFolder.all_in(runs)]
    members: dict[Path, RunFolder] = {}
    for folder in folders:
        members |= {member.path.resolve(): member for member in _members(folder) if member.is_run()}
    return [
        run.path
        for run in sorted(members.values(), key=lambda run: (-run.manifest_file.stat().st_mtime_ns, run.path.name))
    ]


def _members(folder: Path) -> list[RunFolder]:
    return CampaignFolder(folder).runs() if is_campaign(folder) else [RunFolder(folder)]


def is_campaign(folder: Path) -> bool:
    """Whether a folder is a campaign's: it holds links to runs and no cells of its own."""
    return (folder / CAMPAIGN).is_file()
