"""What a small cell costs in processor time, and what a virtual second costs in which nothing happens.

A cell costs differently with a guest booted for it, as the first of a network whose template is forked, and as each further one.

A fork's processes are its own children, and some are killed: this program takes in whatever is orphaned, so that the system counts all of it.
"""

from __future__ import annotations

import ctypes
import os
import resource
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from scpslab import planning, scenario
from scpslab.engine import CellRun
from scpslab.engine.virtual import VirtualEngine
from scpslab.plan import Plan

ROUNDS, FURTHER = 3, 4
PR_SET_CHILD_SUBREAPER = 36
STAR = ("links/terminals:test", "parameters.terminals=32")
CELLS: dict[str, tuple[str, ...]] = {
    "FY97 network, 100 kB": ("fy97/fig04", "sweep={}", "repeats=1", "workloads.transfer.size=100 kB"),
    "FY97 network, 4 MB": ("fy97/fig04", "sweep={}", "repeats=1", "workloads.transfer.size=4 MB"),
    "FY97 network, 4 MB, SCPS-TP": ("fy97/fig04", "sweep={}", "repeats=1", "workloads.transfer.size=4 MB", "hosts.*={stack: scps, preset: fy97-rate}"),
    "two hosts and one hop, 100 kB": ("links/transfer", "sweep={}", "workloads.transfer.size=100 kB"),
    "serial link with PPP, 10 kB": ("tests/same_bytes/serial.yaml", "sweep={}", "workloads.transfer.size=10 kB"),
    "star with 32 terminals, 20 kB from eight": STAR,
}
IDLE_S = 20_000
IDLE = ("limits.virtual=30000 s", "limits.wall=3000 s")


@dataclass(frozen=True)
class Cost:
    """Seconds of a cell."""

    processor_s: float
    wall_s: float


def main() -> None:
    """Measures in turns, so that a slower minute of the machine hits all, and prints the table."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    plans = {name: plan_of(words) for name, words in CELLS.items()}
    VirtualEngine().prepare(print, plans.values())
    found: dict[tuple[str, str], list[Cost]] = {}
    for _ in range(ROUNDS):
        for name, plan in plans.items():
            booted, first, all_ = cost(plan, 1, snapshots=False), cost(plan, 1), cost(plan, 1 + FURTHER)
            further = Cost((all_.processor_s - first.processor_s) / FURTHER, (all_.wall_s - first.wall_s) / FURTHER)
            for kind, one in (("booted", booted), ("first", first), ("further", further)):
                found.setdefault((name, kind), []).append(one)
    Console().print(table(found))
    Console().print(idle_table())


def plan_of(words: tuple[str, ...]) -> Plan:
    """The plan of a scenario's first cell with its overrides."""
    return planning.plan(scenario.cells(scenario.load(words[0], list(words[1:])))[0])


def cost(plan: Plan, count: int, *, snapshots: bool = True) -> Cost:
    """Of cells that differ in their seed, one after the other, with an engine of their own."""
    engine = VirtualEngine()
    engine.prepare(print, [plan])
    engine.snapshots = snapshots
    core = min(os.sched_getaffinity(0))
    before, started = used_s(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="scpslab-bench-") as folder:
        for number in range(count):
            seeded = replace(plan, cell=replace(plan.cell, kernel_seed=f"{number:02x}" * 32))
            status = engine.run(CellRun(seeded, Path(folder) / str(number), core))
            if status["status"] != "completed":
                sys.exit(f"error: {plan.cell.id}: found a cell that {status['status']}: {status['reason']}; expected it to complete.")
        engine.close()
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    return Cost(used_s() - before, time.monotonic() - started)


def used_s() -> float:
    """Processor seconds of this process and of all that it has waited for."""
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def table(found: dict[tuple[str, str], list[Cost]]) -> Table:
    """Medians, and the ratio of a further cell to a booted one."""
    made = Table("", "booted, CPU s", "first, CPU s", "further, CPU s", "further, wall s", "ratio", title=f"medians of {ROUNDS} rounds on one core")
    for name in CELLS:
        booted, first, further = (statistics.median(one.processor_s for one in found[name, kind]) for kind in ("booted", "first", "further"))
        wall_s = statistics.median(one.wall_s for one in found[name, "further"])
        made.add_row(name, f"{booted:.2f}", f"{first:.2f}", f"{further:.2f}", f"{wall_s:.2f}", f"{further / booted:.2f}")
    return made


def idle_table() -> Table:
    """What a transfer costs more that starts later."""
    made = Table("", "CPU ms per virtual s", "virtual s per wall s", title=f"idle for {IDLE_S} virtual s, on one core")
    for name in ("FY97 network, 100 kB", "two hosts and one hop, 100 kB"):
        words = (*CELLS[name], *IDLE)
        at_once, late = (cost(plan_of((*words, f"workloads.transfer.start={start_s} s")), 1) for start_s in (0, IDLE_S))
        pace = IDLE_S / (late.wall_s - at_once.wall_s)
        made.add_row(name, f"{1000 * (late.processor_s - at_once.processor_s) / IDLE_S:.2f}", f"{pace:.0f}")
    return made


main()
