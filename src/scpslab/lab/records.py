"""Records: JSON lines, one file per source, kept in memory while the lab runs and copied out at its end."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scpslab.core.names import file_name


class Records:
    """One JSON-lines file."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("w")

    def write(self, **fields: Any) -> None:
        """Appends one line; keys keep the order given."""
        self._file.write(json.dumps(fields) + "\n")

    def flush(self) -> None:
        """Hands over what was written: a reader of the file sees it from now on."""
        self._file.flush()

    @property
    def closed(self) -> bool:
        """Whether it takes no more lines."""
        return self._file.closed

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


@dataclass(frozen=True)
class Status:
    """How a cell ended (docs/plan-format.md, status.json). Epoch and duration are None where it had no epoch."""

    status: str
    reason: str = ""
    epoch_realtime_ns: int | None = None
    virtual_s: float | None = None

    def text(self) -> str:
        """The file's content."""
        return json.dumps(asdict(self), indent=1) + "\n"


@dataclass(frozen=True)
class Trace:
    """An SCPS program's finished trace: its file, the wall-clock instant of its time zero, the connection's ends and
    its segment size.
    """

    path: Path
    origin_ns: int
    local: str
    remote: str
    mss_bytes: int


def trace_path(records: Path, workload: str, node: str) -> Path:
    """The path of the trace of a workload's SCPS program on a node."""
    return records / file_name(workload, node, "trace", suffix=".jsonl")
