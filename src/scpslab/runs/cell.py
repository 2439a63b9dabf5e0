"""The folder of one cell: the files that the lab wrote, and the plan that it carried out. A JSON file that is missing
or cannot be read is a ResultError that names the file.
"""

from __future__ import annotations

from pathlib import Path

from scpslab.core import strict_json
from scpslab.core.contents import content_of
from scpslab.core.errors import NewerFormat, ResultError
from scpslab.core.names import BadName, file_name
from scpslab.core.strict_json import JsonObject, count, number, text
from scpslab.lab.records import PACKETS, STATES, Status

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
    def states(self) -> Path:
        """The states of TCP."""
        return self.records / STATES

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
        fields = strict_json.loads(content_of(path))
    except OSError as error:
        raise ResultError(
            f"{path}: found {error.strerror}; expected a file with one JSON object. Check the path and its permissions."
        ) from error
    except strict_json.JsonError as error:
        raise ResultError(f"{path}: {error}; expected one JSON object. {AGAIN}") from error
    if not isinstance(fields, dict):
        raise ResultError(f"{path}: found {type(fields).__name__}; expected one JSON object. {AGAIN}")
    return fields


def check_format(path: Path, found: object, newest: int = FORMAT) -> None:
    """Raises an error if a file's format number is none that this program reads: those from 1 to the one that it writes
    (docs/formats.md).
    """
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise ResultError(f'{path}: format: found "{str(found)[:40]}"; expected {newest}. {AGAIN}')
    if found > newest:
        raise NewerFormat(
            f"{path}: format: found {found}; expected {newest}. A newer scpslab wrote the run: use that version."
        )
