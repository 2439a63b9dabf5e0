"""What host and appliance tell each other: one line of JSON for each job, one for each answer, and files in the
exchange folder.

Of job 7 the exchange folder has 7/cell, what the lab reads; afterwards also 7/out, what it wrote, and 7/console.log.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

# Where the machine has the folders that the host shares (images/appliance/init.c).
MACHINE = Path("/machine")
BOOT, LAB, KERNEL, TOOLS, PROGRAM, EXCHANGE = "boot", "lab", "kernel", "tools", "program", "exchange"
# The name of the serial port.
PORT = "scpslab"
READY = "ready"
# The names of a job's files in its folder.
CELL, OUT, CONSOLE = "cell", "out", "console.log"


@dataclass(frozen=True, kw_only=True)
class Job:
    """A guest to run. `boot`, `lab`: names of folders among those shared, "" if `lab` is in the exchange folder.

    `is_cell`: a cell with a plan; else a guest of so much memory that runs the program of `lab`. `wall_s`: how long it
    may take, in this machine's time.
    """

    id: int
    boot: str
    lab: str
    is_cell: bool
    memory_mib: int
    wall_s: float
    snapshots: bool


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How a job ended: `ended`, why the machine ended it ("" if it ended by itself), and the exit code of the lab
    kernel.
    """

    id: int
    ended: str
    returncode: int


def line(said: Job | Answer) -> bytes:
    """A job or an answer as it is sent."""
    return json.dumps(asdict(said)).encode() + b"\n"
