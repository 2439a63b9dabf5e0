"""What a small cell costs in processor time, and what a virtual second costs in which nothing happens.

A cell costs differently with a guest booted for it, as the first of a network whose template is forked, and as each
further one.
"""

import os
import statistics
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from meter import Cost, Meter, completed, console, plan_of, take_in_orphans
from rich.table import Table

from scpslab.engine import CellRun
from scpslab.engine.virtual import VirtualEngine
from scpslab.plan import Plan
from scpslab.setup import silent
from scpslab.setup.images import DOCKER, cache_dir, find

ROUNDS, FURTHER = 3, 4
STAR = ("links/terminals:test", "parameters.terminals=32")
CELLS: dict[str, tuple[str, ...]] = {
    "FY97 network, 100 kB": ("fy97/fig04", "sweep={}", "repeats=1", "workloads.transfer.size=100 kB"),
    "FY97 network, 4 MB": ("fy97/fig04", "sweep={}", "repeats=1", "workloads.transfer.size=4 MB"),
    "FY97 network, 4 MB, SCPS-TP": (
        "fy97/fig04",
        "sweep={}",
        "repeats=1",
        "workloads.transfer.size=4 MB",
        "hosts.*={stack: scps, preset: fy97-rate}",
    ),
    "two hosts and one hop, 100 kB": ("links/transfer", "sweep={}", "workloads.transfer.size=100 kB"),
    "serial link with PPP, 10 kB": ("tests/same_bytes/serial.yaml", "sweep={}", "workloads.transfer.size=10 kB"),
    "star with 32 terminals, 20 kB from eight": STAR,
}
DOCKER_CELL = ("fy97/fig04:test", "sweep={}", "repeats=1", "workloads.transfer.size=50 kB", "containers=docker")
# What is left of a cell whose whole experiment is one packet and its answer: the first packet has left before its end.
ONE_PACKET = (
    "fy97/fig04",
    "sweep={}",
    "repeats=1",
    "probes=[]",
    "workloads=[{kind: ping, name: echo, from: ws1, to: ws2, count: 1}]",
)
IDLE_S = 20_000
IDLE = ("limits.virtual=30000 s", "limits.wall=3000 s")


def main() -> None:
    """Measures in turns, so that a slower minute of the machine hits all, and prints the table."""
    take_in_orphans()
    plans = {name: plan_of(*words) for name, words in CELLS.items()}
    plans["FY97 network, one packet and its answer"] = plan_of(*ONE_PACKET)
    if find(DOCKER, cache_dir()):
        plans["FY97 network of Docker nodes, 50 kB"] = plan_of(*DOCKER_CELL)
    else:
        print(
            "Docker nodes: not measured; their images are not built. Run first: "
            "scpslab run fy97/fig04:test --set containers=docker"
        )
    VirtualEngine().prepare(silent, plans.values())
    found: dict[tuple[str, str], list[Cost]] = {}
    for _ in range(ROUNDS):
        for name, plan in plans.items():
            booted, first, all_ = cost(plan, 1, snapshots=False), cost(plan, 1), cost(plan, 1 + FURTHER)
            further = Cost((all_.processor_s - first.processor_s) / FURTHER, (all_.wall_s - first.wall_s) / FURTHER)
            for kind, one in (("booted", booted), ("first", first), ("further", further)):
                found.setdefault((name, kind), []).append(one)
    console().print(table(found, plans))
    console().print(idle_table())


def cost(plan: Plan, count: int, *, snapshots: bool = True) -> Cost:
    """Of cells that differ in their seed, one after the other, with an engine of their own."""
    engine = VirtualEngine(snapshots=snapshots)
    engine.prepare(silent, [plan])
    core = min(os.sched_getaffinity(0))
    with Meter() as meter, tempfile.TemporaryDirectory(prefix="scpslab-bench-") as folder:
        for number in range(count):
            seeded = replace(plan, cell=replace(plan.cell, kernel_seed=f"{number:02x}" * 32))
            completed(engine, CellRun(seeded, Path(folder) / str(number), core))
        memory_bytes = max((one.memory_bytes or 0 for one in engine.templates()), default=0)
        engine.close()
    return replace(meter.cost, memory_bytes=memory_bytes)


def table(found: dict[tuple[str, str], list[Cost]], names: Iterable[str]) -> Table:
    """Medians."""
    columns = ("", "booted, CPU s", "first, CPU s", "further, CPU s", "further, wall s", "template, MB")
    made = Table(*columns, title=f"What a cell costs (medians of {ROUNDS} rounds on one core)")
    for name in names:
        booted, first, further = (
            statistics.median(one.processor_s for one in found[name, kind]) for kind in ("booted", "first", "further")
        )
        wall_s = statistics.median(one.wall_s for one in found[name, "further"])
        memory_mb = found[name, "first"][0].memory_bytes / 1e6
        made.add_row(
            name,
            f"{booted:.2f}",
            f"{first:.2f}",
            f"{further:.2f}",
            f"{wall_s:.2f}",
            f"{memory_mb:.0f}",
        )
    return made


def idle_table() -> Table:
    """What a transfer costs more that starts later."""
    made = Table(
        "",
        "CPU ms per virtual s",
        "virtual s per wall s",
        title=f"What an idle virtual second costs ({IDLE_S} of them on one core)",
    )
    for name in ("FY97 network, 100 kB", "two hosts and one hop, 100 kB"):
        words = (*CELLS[name], *IDLE)
        at_once, late = (cost(plan_of(*words, f"workloads.transfer.start={start_s} s"), 1) for start_s in (0, IDLE_S))
        pace = IDLE_S / (late.wall_s - at_once.wall_s)
        made.add_row(name, f"{1000 * (late.processor_s - at_once.processor_s) / IDLE_S:.2f}", f"{pace:.0f}")
    return made


if __name__ == "__main__":
    main()
