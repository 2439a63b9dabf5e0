"""A lab's console: what it says is kept up to a limit, and samples of its cell are told while it runs.

A program in the lab can write there too, whatever it likes.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeGuard

from scpslab.core.strict_json import JsonError, loads
from scpslab.engine.base import CellSample, LabProcess
from scpslab.engine.cell_folder import CellFolder
from scpslab.lab.records import LIVE, LONGEST_LIVE
from scpslab.plan import Plan
from scpslab.plan.cell import LONGEST_S

# A lab that works says some kilobytes. One that floods its console is ended, within LOOK_S.
MOST_BYTES, LOOK_S = 16 << 20, 0.2
READ_BYTES = 1 << 16
KEY = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
LONGEST_TEXT, LARGEST = 60, 1 << 63


class LabConsole:
    """The console of a cell's lab, in the cell's folder."""

    def __init__(self, folder: CellFolder, hear: Callable[[CellSample], None] | None = None) -> None:
        """`hear`: gets the samples, if anybody listens."""
        self._folder, self._hear = folder, hear
        self._sources = sources(folder.plan)
        self._heard = 0

    @contextmanager
    def watched(self, process: LabProcess) -> Iterator[None]:
        """Meanwhile, samples are told, and a lab that fills its console is ended; `cut` says so afterwards."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(LOOK_S):
                self._tell()
                if self._bytes() > MOST_BYTES:
                    process.kill()
                    return

        thread = threading.Thread(target=watch, name="console", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self._tell()

    def cut(self) -> str:
        """Cuts what an ended lab has said at the limit. Returns "", or why the lab failed."""
        if self._bytes() <= MOST_BYTES:
            return ""
        os.truncate(self._folder.console, MOST_BYTES)
        return (
            f"found more than {MOST_BYTES >> 20} MiB on the lab's console; expected less. "
            "Have the cell's programs say less"
        )

    def _bytes(self) -> int:
        with suppress(FileNotFoundError):
            return self._folder.console.stat().st_size
        return 0

    def _tell(self) -> None:
        """Tells the samples since the last look; a line that has no end yet is left for the next one."""
        if self._hear is None or self._bytes() <= self._heard:
            return
        with self._folder.console.open("rb") as console:
            console.seek(self._heard)
            while said := console.read(READ_BYTES):
                end = said.rfind(b"\n") + 1
                if not end and len(said) < READ_BYTES:
                    return
                # A line that fills a whole piece is none of ours.
                self._heard += end or len(said)
                console.seek(self._heard)
                for line in said[:end].split(b"\n"):
                    if sample := read(line, self._sources):
                        self._hear(sample)


def sources(plan: Plan) -> frozenset[str]:
    """The names of what can say something in a cell."""
    return frozenset(part.name for part in plan.cell.workloads) | {part.name for part in plan.cell.probes}


def line_of(sample: CellSample) -> str:
    """A sample as a line of the live stream, which `read` reads: for a cell that runs on another machine."""
    return f"{LIVE}{json.dumps({'source': sample.source, 't_s': sample.t_s, **sample.values})}\n"


def read(line: bytes, sources: frozenset[str]) -> CellSample | None:
    """The sample in a line of the console; None where it is none of the live stream, or not as our lab writes it."""
    if not line.startswith(LIVE.encode()) or len(line) > LONGEST_LIVE:
        return None
    try:
        fields = loads(line[1:])
    except JsonError:
        return None
    if not isinstance(fields, dict):
        return None
    source, t_s = fields.pop("source", None), fields.pop("t_s", None)
    if not isinstance(source, str) or source not in sources or not _is_number(t_s) or not 0 <= t_s <= LONGEST_S:
        return None
    values = {key: value for key, value in fields.items() if KEY.fullmatch(key) and _is_plain(value)}
    return CellSample(t_s, source, values) if len(values) == len(fields) else None


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def _is_plain(value: object) -> TypeGuard[str | float | None]:
    """Whether a terminal obeys nothing in it."""
    if isinstance(value, str):
        return len(value) <= LONGEST_TEXT and value.isascii() and value.isprintable()
    return value is None or _is_number(value)
