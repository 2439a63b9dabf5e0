"""The folders of runs and campaigns (docs/results.md): their files, the manifest, and campaign.json with its links;
their lock, which the kernel releases however its process ends; and the folders that a person names. And of one cell:
the files that the lab wrote, and the plan that it carried out. A JSON file that is missing or cannot be read is a
ResultError that names the file.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypedDict

from scpslab.core import strict_json
from scpslab.core.contents import check_sizes, content_of, json_fields
from scpslab.core.errors import CapabilityError, NewerFormat, ResultError, UsageError, some_of
from scpslab.core.folders import TOPOLOGIES, is_own, own_folder
from scpslab.core.names import UNFINISHED, BadName, file_label, file_name
from scpslab.core.scratch import replace_bytes, replace_text
from scpslab.core.strict_json import JsonObject, count, items, number, section, text
from scpslab.lab.records import GATEWAY_STATES, PACKETS, SCPS_STATES, STATES, Status
from scpslab.setup import cache_dir

FORMAT = 1
AGAIN = 'Run the scenario again: "scpslab run" keeps finished cells and runs the others again.'
PLAN = "plan.json"
STATUS = "status.json"
ENVIRONMENT = "environment.json"
RECORDS, CAPTURES, LOGS = "records", "captures", "logs"
STATUSES = ("completed", "incomplete", "unsupported", "failed")


class CellFiles:
    """The paths of a cell's files. A folder without status.json belongs to a cell that did not end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.plan, self.status_file, self.environment = path / PLAN, path / STATUS, path / ENVIRONMENT
        self.records, self.captures, self.logs = path / RECORDS, path / CAPTURES, path / LOGS

    @property
    def packets(self) -> Path:
        """The record of every packet."""
        return self.records / PACKETS

    @property
    def states(self) -> tuple[Path, ...]:
        """The states of the kernel's TCP and of SCPS-TP, whether there are any or not."""
        return self.records / STATES, self.records / SCPS_STATES

    def gateway_states(self, gateway: str) -> Path:
        """Those of a gateway's connections over the link."""
        return self._file(self.records, gateway, GATEWAY_STATES)

    @property
    def has_ended(self) -> bool:
        """Whether the cell has ended."""
        return self.status_file.is_file()

    def record(self, name: str) -> Path:
        """The records of a workload or probe: one JSON object a line."""
        return self._file(self.records, name, ".jsonl")

    def capture(self, probe: str) -> Path:
        """The packets that a capture probe saw."""
        return self._file(self.captures, probe, ".pcap")

    def log(self, name: str) -> Path:
        """The output of a program."""
        return self._file(self.logs, name, ".log")

    def make_folders(self) -> None:
        """Makes the folders that every cell has, even if they stay empty."""
        for folder in (self.logs, self.records, self.captures):
            folder.mkdir(exist_ok=True)

    def status(self) -> Status:
        """How the cell ended, one of STATUSES; failed when it did not end.

        Raises:
            ResultError: status.json exists, but does not have this form.
        """
        if not self.has_ended:
            return Status("failed", f"no {STATUS}: the cell did not end")
        fields = json_object(self.status_file)
        status = text(fields, "status")
        if status not in STATUSES:
            found = f'found "{str(fields.get("status"))[:40]}"; expected one of {", ".join(STATUSES)}'
            raise ResultError(f"{self.status_file}: status: {found}. {AGAIN}")
        reason, virtual_s = text(fields, "reason") or "", number(fields, "virtual_s")
        lasted_s = None if virtual_s is None else max(0.0, virtual_s)
        return Status(status, reason, count(fields, "epoch_realtime_ns"), lasted_s)

    def write_status(self, status: Status) -> None:
        """Writes status.json for a lab that has not written it."""
        self.status_file.write_text(status.text())

    def _file(self, folder: Path, name: str, suffix: str) -> Path:
        try:
            return folder / file_name(name, suffix=suffix)
        except BadName as error:
            raise ResultError(f"{self.plan}: {error}. {AGAIN}") from error


def json_object(path: Path) -> JsonObject:
    """The JSON object in a file.

    Raises:
        ResultError: the file cannot be read, or holds something else.
    """
    try:
        return json_fields(content_of(path))
    except OSError as error:
        advice = "Check the path and its permissions."
        raise ResultError(f"{path}: found {error.strerror}; expected a file with one JSON object. {advice}") from error
    except strict_json.JsonError as error:
        raise ResultError(f"{path}: {error}; expected one JSON object. {AGAIN}") from error


def check_format(path: Path, found: object, newest: int = FORMAT) -> None:
    """Raises an error if a file's format number is none that this program reads: those from 1 to the one that it writes
    (docs/formats.md).
    """
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise ResultError(f'{path}: format: found "{str(found)[:40]}"; expected {newest}. {AGAIN}')
    if found > newest:
        advice = "A newer scpslab wrote the run: use that version."
        raise NewerFormat(f"{path}: format: found {found}; expected {newest}. {advice}")


KEY, KEY_BYTES = "origin.key", 32


def seal(run: Path, folder: Path) -> str | None:
    """The seal of a run in `run`, whose scenario lies in `folder`; None where the cache cannot be written."""
    key = _key(is_made=True)
    return None if key is None else _code(key, run, folder)


def is_sealed(run: Path, folder: Path, found: str | None) -> bool:
    """Whether a run of this user in `run` had its scenario in `folder`. A run folder that was moved has lost that."""
    key = _key(is_made=False)
    return found is not None and key is not None and hmac.compare_digest(_code(key, run, folder), found)


def _code(key: bytes, run: Path, folder: Path) -> str:
    places = b"\0".join(os.fsencode(place.resolve()) for place in (run, folder))
    return hmac.new(key, places, hashlib.sha256).hexdigest()


def _key(*, is_made: bool) -> bytes | None:
    try:
        path = cache_dir() / KEY
        if is_made:
            path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(os.urandom(KEY_BYTES))
        content = path.read_bytes()
    except (OSError, CapabilityError):
        return None
    # One that another process is writing at this moment.
    return content if len(content) == KEY_BYTES else None


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
    folder to a scenario of the user's own. `origin`: the seal of that folder (`seal`).
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

    def lost_cells(self) -> str:
        """What to say of cells that ended, and whose folders are not there any more; "" where there are none."""
        lost = sorted(self.manifest().cells.keys() - {cell.path.name for cell in self.planned_cells()})
        said = f"{self.cells}: found no folder of {some_of(lost)}; expected every cell in {MANIFEST}. {AGAIN}"
        return said if lost else ""

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
        return any(cell.has_ended for cell in self.planned_cells() if not cell.path.name.endswith(UNFINISHED))

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
            expected = 'expected a run folder as "scpslab run" writes it. Choose another folder.'
            raise ResultError(f"{self.path}: found no {MANIFEST}; {expected}")
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
        listed, left_out = fields.get("runs"), items(fields, "left_out", str)
        is_whole = isinstance(listed, list) and len(listed) == len(runs) and left_out == fields.get("left_out", [])
        if title is None or status is None or text(fields, "campaign") is None or not is_whole:
            expected = "expected campaign, title, status, runs and left_out"
            advice = "Run the campaign again: it writes the file anew."
            raise ResultError(f"{self.file}: found no campaign; {expected}. {advice}")
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
    fields: JsonObject = {}
    with suppress(strict_json.JsonError):
        fields = json_fields(os.pread(descriptor, 4096, 0))
    pid, since = count(fields, "pid"), text(fields, "since")
    if pid is None or since is None or not since.isprintable():
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
        advice = 'Run a scenario first: "scpslab run SCENARIO".'
        raise ResultError(f"{runs}: found no run with a finished cell; expected one. {advice}")
    for folder in (Path(named), runs / named):
        if folder.is_dir():
            return folder
    expected = f'expected a run folder, its name under {runs}/, or the word "last". Correct the name.'
    raise ResultError(f"{named}: found no such folder; {expected}")


def runs_of(named: Sequence[str], runs: Path = RUNS) -> list[Path]:
    """The run folders that the words name, newest first, each once.

    No words name all runs under `runs`; a campaign names the runs that it lists.

    Raises:
        ResultError: a word does not name a run. A run without cells is left out, because it or its campaign may have
            been interrupted.
    """
    folders = [find_run(word, runs) for word in named] if named else [run.path for run in RunFolder.all_in(runs)]
    members = {member.path.resolve(): member for folder in folders for member in _members(folder) if member.is_run()}
    newest = sorted(members.values(), key=lambda run: (-run.manifest_file.stat().st_mtime_ns, run.path.name))
    return [run.path for run in newest]


def _members(folder: Path) -> list[RunFolder]:
    return CampaignFolder(folder).runs() if is_campaign(folder) else [RunFolder(folder)]


def is_campaign(folder: Path) -> bool:
    """Whether a folder is a campaign's: it holds links to runs and no cells of its own."""
    return (folder / CAMPAIGN).is_file()
