"""A run folder as it lies on disk: its manifest and its cells, read and never written.

What is missing or cannot be read is a ResultError that names the file; a cell without status.json did not end and counts as failed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from scpslab import strict_json
from scpslab.errors import ResultError
from scpslab.names import BadName, file_name
from scpslab.results.capture import Connection, Packets, read_packets, split_connections
from scpslab.results.plan_view import PlanView, Workload

FORMAT = 1
AGAIN = 'Run the scenario again: "scpslab run" keeps what is finished and makes the rest anew.'
MANIFEST_FILE = "manifest.json"
CAMPAIGN_FILE = "campaign.json"
STATUSES = ("completed", "incomplete", "unsupported", "failed")


class NewerFormat(ResultError):
    """A file that a newer program wrote: nothing is wrong with it."""


@dataclass(frozen=True)
class Cell:
    """One cell of a run. `epoch_realtime_ns` is the instant that `t_s` = 0 stands for; None when the cell never got there."""

    folder: Path
    plan: PlanView
    status: str
    reason: str
    epoch_realtime_ns: int | None

    @property
    def id(self) -> str:
        """The cell's name, such as "stack=fy97-reno,ber=1e-06,r1"."""
        return self.plan.cell.id

    def records(self, name: str) -> list[dict[str, Any]]:
        """The lines of records/<name>.jsonl; none when there is no such file.

        Raises:
            ResultError: a line is not a JSON object (a last line cut short is left out).
        """
        path = self._file("records", name, ".jsonl")
        if not path.is_file():
            return []
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
        found: list[dict[str, Any]] = []
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                fields = json.loads(line)
            except (ValueError, RecursionError) as error:
                if number == len(lines):
                    # No line feed at the end: the writer was ended in the middle of this line.
                    break
                raise ResultError(f"{path}:{number}: {error}; expected one JSON object a line.") from error
            if not isinstance(fields, dict):
                raise ResultError(f"{path}:{number}: found {type(fields).__name__}; expected one JSON object a line.")
            found.append(fields)
        return found

    def packets(self, probe: str) -> Packets | None:
        """What the capture probe `probe` saw; None when it left no file."""
        path = self._file("captures", probe, ".pcap")
        return read_packets(path) if path.is_file() else None

    def _file(self, part: str, name: str, suffix: str) -> Path:
        try:
            return self.folder / part / file_name(name, suffix=suffix)
        except BadName as error:
            raise ResultError(f"{self.folder / 'plan.json'}: {error}. {AGAIN}") from error

    def connection(self, probe: str, workload: Workload) -> Connection | None:
        """The TCP connection of `workload` in that capture (the one with the most payload); None when it is not there."""
        packets = self.packets(probe)
        if packets is None:
            return None
        mine = [
            connection
            for connection in split_connections(packets, self.epoch_realtime_ns)
            if workload.port in (None, connection.server_port) and workload.to_ip in (None, connection.server_ip)
        ]
        return max(mine, key=lambda connection: int(connection.payload_bytes.sum()), default=None)


@dataclass(frozen=True)
class Run:
    """A run folder: its manifest and the cells that are there, in the order of the sweep."""

    folder: Path
    manifest: dict[str, Any]
    cells: tuple[Cell, ...]

    @property
    def id(self) -> str:
        """The folder's name: scenario and hash."""
        return self.folder.name

    @property
    def scenario(self) -> str:
        """The scenario's name."""
        if self.cells:
            return self.cells[0].plan.cell.scenario
        found = self.manifest.get("scenario")
        return found if isinstance(found, str) else self.id.rpartition("-")[0]


def find_run(named: str, runs: Path = Path("runs")) -> Path:
    """The run or campaign folder that `named` means: a folder, the name of one under `runs`, or "last" for the newest under `runs`.

    Raises:
        ResultError: there is none.
    """
    if named == "last":
        marks = [mark for name in (MANIFEST_FILE, CAMPAIGN_FILE) for mark in runs.glob(f"*/{name}")] if runs.is_dir() else []
        if not marks:
            raise ResultError(f'{runs}: found no run; expected a folder with manifest.json. Run a scenario first: "scpslab run SCENARIO".')
        return max(marks, key=lambda mark: (mark.stat().st_mtime_ns, mark.parent.name)).parent
    for folder in (Path(named), runs / named):
        if folder.is_dir():
            return folder
    raise ResultError(f'{named}: found no such folder; expected a run folder, its name under {runs}/, or the word "last".')


def runs_of(named: Sequence[str], runs: Path = Path("runs")) -> list[Path]:
    """The run folders that the words mean, newest first, each once: all under `runs` for no words, and for a campaign those that it lists.

    Raises:
        ResultError: a word that means no run; a run without cells is left out, for it or its campaign may be interrupted.
    """
    folders = [find_run(word, runs) for word in named] if named else [path.parent for path in runs.glob(f"*/{MANIFEST_FILE}")]
    found: dict[Path, Path] = {}
    for folder in folders:
        members = campaign_runs(folder) if is_campaign(folder) else [folder]
        found |= {member.resolve(): member for member in members if (member / MANIFEST_FILE).is_file() and any(member.glob("cells/*/plan.json"))}
    return sorted(found.values(), key=lambda folder: (-(folder / MANIFEST_FILE).stat().st_mtime_ns, folder.name))


def is_campaign(folder: Path) -> bool:
    """Whether a folder is a campaign's: it holds links to runs and no cells of its own."""
    return (folder / CAMPAIGN_FILE).is_file()


def campaign_runs(folder: Path) -> list[Path]:
    """The run folders of a campaign, in its order, whether they are there or not.

    Raises:
        ResultError: a file of the campaign that cannot be read.
    """
    return [folder / entry["run"] for entry in read_campaign(folder)["runs"]]


def read_campaign(folder: Path) -> dict[str, Any]:
    """What campaign.json says.

    Raises:
        ResultError: it cannot be read.
    """
    path = folder / CAMPAIGN_FILE
    fields = _json_object(path)
    _refuse_newer(path, fields.get("format", FORMAT))
    entries, left_out = fields.get("runs"), fields.get("left_out", [])
    are_runs = isinstance(entries, list) and all(isinstance(entry, dict) and isinstance(entry.get("run"), str) for entry in entries)
    are_names = isinstance(left_out, list) and all(isinstance(name, str) for name in left_out)
    if not (are_runs and are_names and all(isinstance(fields.get(key), str) for key in ("campaign", "title", "status"))):
        raise ResultError(f"{path}: found no campaign; expected campaign, title, status, runs and left_out. Run the campaign again: it writes the file anew.")
    return {**fields, "left_out": left_out}


def open_run(folder: Path) -> Run:
    """Reads the manifest and every cell's plan and status.

    Raises:
        ResultError: no run, an unreadable file, or a format newer than this program knows.
    """
    if not folder.is_dir():
        raise ResultError(f"{folder}: found no such folder; expected a run folder.")
    if is_campaign(folder):
        runs = ", ".join(run.name for run in campaign_runs(folder))
        raise ResultError(f"{folder}: found a campaign; expected one of its runs: {runs}. Choose one of these; claims and report take campaigns too.")
    manifest = read_manifest(folder)
    cells_folder = folder / "cells"
    folders = [path for path in sorted(cells_folder.iterdir()) if (path / "plan.json").is_file()] if cells_folder.is_dir() else []
    if not folders:
        raise ResultError(f"{cells_folder}: found no cell with a plan.json; expected at least one. {AGAIN}")
    return Run(folder, manifest, tuple(sorted(map(open_cell, folders), key=_order)))


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a run.

    Raises:
        ResultError: there is none, or it cannot be read.
    """
    path = folder / MANIFEST_FILE
    if not path.is_file():
        raise ResultError(f'{folder}: found no manifest.json; expected a run folder as "scpslab run" writes it.')
    manifest = _json_object(path)
    _refuse_newer(path, manifest.get("format", manifest.get("format_version", FORMAT)))
    return manifest


def cell_status(folder: Path) -> dict[str, Any]:
    """A cell's status.json (docs/plan-format.md): "status" completed, incomplete, unsupported or failed, and "reason"; failed when the cell did not end.

    Raises:
        ResultError: there is one, and it says something else.
    """
    path = folder / "status.json"
    if not path.is_file():
        return {"status": "failed", "reason": "no status.json: the cell did not end"}
    status = _json_object(path)
    if status.get("status") not in STATUSES:
        raise ResultError(f'{path}: status: found "{str(status.get("status"))[:40]}"; expected one of {", ".join(STATUSES)}. {AGAIN}')
    return status


def open_cell(folder: Path) -> Cell:
    """Reads a cell's plan and status.

    Raises:
        ResultError: one of them cannot be read.
    """
    path = folder / "plan.json"
    fields = _json_object(path)
    _refuse_newer(path, fields.get("format", FORMAT))
    try:
        plan = PlanView.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ResultError(f"{path}: {where}: {first['msg']}; expected a plan as docs/plan-format.md describes it. {AGAIN}") from error
    status = cell_status(folder)
    epoch = status.get("epoch_realtime_ns")
    return Cell(folder, plan, status["status"], str(status.get("reason") or ""), epoch if isinstance(epoch, int) else None)


def _json_object(path: Path) -> dict[str, Any]:
    try:
        fields = strict_json.loads(path.read_bytes())
    except OSError as error:
        raise ResultError(f"{path}: found {error.strerror}; expected one JSON object. See to the file.") from error
    except strict_json.JsonError as error:
        raise ResultError(f"{path}: {error}; expected one JSON object. {AGAIN}") from error
    if not isinstance(fields, dict):
        raise ResultError(f"{path}: found {type(fields).__name__}; expected one JSON object. {AGAIN}")
    return fields


def _refuse_newer(path: Path, found: object) -> None:
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise ResultError(f'{path}: format: found "{str(found)[:40]}"; expected {FORMAT}. {AGAIN}')
    if found > FORMAT:
        raise NewerFormat(f"{path}: format: found {found}; expected at most {FORMAT}. The run was written by a newer scpslab: use that one.")


def _order(cell: Cell) -> tuple[object, ...]:
    """Sort key of the cells: axis by axis, numbers by size. The order in which cells ended must not show in results.csv."""
    axes = cell.plan.cell.axes
    return ([natural(str(value)) for value in axes.values()], cell.plan.cell.repeat, cell.id)


def natural(text: str) -> tuple[tuple[int, float, str], ...]:
    """Sort key of a text in which numbers (also 1e-06) stand in the order of their size."""
    parts = re.split(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)", text)
    return tuple((1, float(part), "") if index % 2 else (0, 0.0, part) for index, part in enumerate(parts) if part)
