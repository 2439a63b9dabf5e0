"""Records: JSON lines, one file per source, kept in memory while the lab runs and copied out at its end.

And the live stream: what a cell does now, for whoever listens.
"""

import json
import os
import re
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from scpslab.core.names import file_name
from scpslab.core.strict_json import JsonObject, number
from scpslab.lab.loop import Epoch, Loop

# How a line of the live stream begins (RFC 7464 section 2.2); and its longest line, in bytes.
LIVE, LONGEST_LIVE = "\x1e", 2048
# What is kept of a log, and how it begins where that is not all.
LOG_BYTES, CUT = 1 << 20, re.compile(rb"\((\d+) bytes before this line are left out\)\n")
# In the folder of records: what became of every packet, and the states of TCP (docs/plan-format.md).
PACKETS, STATES, SCPS_STATES = "packets.rec", "states.rec", "scps-states.rec"
# Behind a gateway's name: those of its connections over the link.
GATEWAY_STATES = ".states.rec"
# Beside the folders, of a run that asks when events come: a line for each, with its number and its time.
INSTANTS = "instants.jsonl"
# Copies of a source's records are at least a second apart, and twice as far after each so many. All are this long.
COPIES, MOST_LIVE_BYTES = 128, 1 << 20


def keep_end(log: Path) -> None:
    """Leaves of a log that is longer than LOG_BYTES its end, behind a line that says how much went before."""
    with log.open("rb+") as file:
        cut = CUT.match(file.read(64))
        begins = cut.end() if cut else 0
        gone = file.seek(0, os.SEEK_END) - begins - LOG_BYTES
        if gone > 0:
            file.seek(-LOG_BYTES, os.SEEK_END)
            end = file.read()
            file.seek(0)
            file.truncate()
            file.write(b"(%d bytes before this line are left out)\n" % (gone + int(cut[1] if cut else 0)) + end)


class Records:
    """One JSON-lines file."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self._file = path, path.open("w")

    def write(self, **fields: object) -> None:
        """Appends one line; keys keep the order given. What comes after the cell has ended is in no record."""
        if not self.closed:
            self._file.write(json.dumps(fields) + "\n")

    def show_lines(self) -> None:
        """Hands over each line as soon as it is written, from now on."""
        self._file.reconfigure(line_buffering=True)

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


class Live:
    """Lines on the lab's console that tell what a cell does now.

    They are written whether anybody listens or not, so listening changes nothing of a cell. A system call lets other
    programs run, which moves what happens at the same instant by some reads of the clock (256 ns each). So a
    probe's line is written when the lab would sleep anyway, and one about a workload, when much happens, waits for it.
    """

    def __init__(self, loop: Loop, epoch: Epoch) -> None:
        self._loop, self._epoch, self._left = loop, epoch, MOST_LIVE_BYTES
        self._waiting: list[JsonObject] = []
        self._is_asked = self._is_due = False
        # Of each source: how many of its instants were told, and the last one.
        self._told: dict[str, tuple[int, float]] = {}

    def copy(self, source: str, record: JsonObject) -> None:
        """Tells a record of a probe, unless it comes too soon after another instant of the probe."""
        t_s = number(record, "t_s") or 0.0
        told, last_s = self._told.get(source, (0, float("-inf")))
        if t_s == last_s or t_s >= last_s + (1 << told // COPIES):
            self._told[source] = (told + (t_s != last_s), t_s)
            self._add({"source": source, **record}, is_due=True)

    def state(self, source: str, state: str) -> None:
        """Tells what has become of a workload."""
        self._add({"source": source, "state": state}, is_due=False)

    def _add(self, values: JsonObject, *, is_due: bool) -> None:
        self._waiting.append(values)
        self._is_due |= is_due
        if not self._is_asked:
            self._is_asked = True
            self._loop.before_sleep(self._stamp)

    def _stamp(self, now_ns: int) -> None:
        self._is_asked = False
        for values in self._waiting:
            values.setdefault("t_s", max(self._epoch.t_s(now_ns), 0.0))
        if self._is_due:
            self.write()

    def write(self) -> None:
        """Writes what waits; at the cell's end, the rest."""
        lines = [f"{LIVE}{json.dumps(values)}\n" for values in self._waiting if "t_s" in values]
        self._waiting.clear()
        self._is_due = False
        kept = [line for line in lines if len(line) <= LONGEST_LIVE]
        if sum(map(len, kept)) <= self._left:
            self._left -= sum(map(len, kept))
            sys.stdout.write("".join(kept))
            sys.stdout.flush()


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
