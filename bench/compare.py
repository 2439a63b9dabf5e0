"""The lab's speed beside a simulator's, in one run: what a longer transfer over the geostationary hop costs, with the
parts of the lab taken away one by one.

A cell's start costs the same whatever it transfers; the marginal cost, 40 MB less 4 MB, is what scales. Usage:
compare.py [GEO], the program made of geo.cc.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from meter import completed, console, plan_of
from rich.table import Table

from scpslab.engine import CellRun
from scpslab.engine.virtual import VirtualEngine
from scpslab.plan import Plan
from scpslab.setup import silent

SIZES = (4_000_000, 40_000_000)
ROUNDS = 3
FY97 = ("fy97/fig04", "sweep={}", "repeats=1")
NO_CAPTURES = "probes=[{kind: tcp_info, node: ws1, interval: 1 h}]"
LABS: dict[str, tuple[str, ...]] = {
    "lab, FY97 network, 2 captures": FY97,
    "lab, FY97 network, 1 capture": (*FY97, "probes=[{kind: capture, node: ws2}]"),
    "lab, FY97 network, no capture": (*FY97, NO_CAPTURES),
    "lab, two hosts and one hop": (
        "links/transfer",
        "sweep={}",
        "hosts={h1: {preset: fy97-reno}, h2: {preset: fy97-reno}}",
    ),
}


@dataclass
class Contender:
    """Something that runs a transfer of so many bytes; `best_s` by size, the least of all rounds: what disturbs only
    adds.
    """

    name: str
    run: Callable[[int], None]
    best_s: dict[int, float]

    @property
    def marginal_s(self) -> float:
        """Wall seconds that the longer transfer takes more."""
        return self.best_s[SIZES[1]] - self.best_s[SIZES[0]]


def main() -> None:
    """Runs everything in turns, so that a slower minute of the machine hits all, and prints the table."""
    engine = VirtualEngine()
    core = min(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="scpslab-bench-") as folder:
        plans = {
            (name, size): plan_of(*words, f"workloads.transfer.size={size} B")
            for name, words in LABS.items()
            for size in SIZES
        }
        engine.prepare(silent, plans.values())
        contenders = [Contender("ns-3, its own TCP model", ns3(sys.argv[1], core), {})] if sys.argv[1:] else []
        for name in LABS:
            contenders.append(
                Contender(
                    name,
                    partial(cell, engine, {size: plans[name, size] for size in SIZES}, Path(folder) / "cell", core),
                    {},
                )
            )
        for _ in range(ROUNDS):
            for contender in contenders:
                for size in SIZES:
                    started = time.monotonic()
                    contender.run(size)
                    taken_s = time.monotonic() - started
                    contender.best_s[size] = min(taken_s, contender.best_s.get(size, taken_s))
    console().print(table(contenders))


def cell(engine: VirtualEngine, by_size: dict[int, Plan], folder: Path, core: int, size: int) -> None:
    """Runs the plan for a size, which has to complete."""
    completed(engine, CellRun(by_size[size], folder, core))


def ns3(program: str, core: int) -> Callable[[int], None]:
    """Runs the simulator on the same core."""

    def run(size: int) -> None:
        said = subprocess.run(
            ["taskset", "--cpu-list", str(core), program, f"--bytes={size}"], capture_output=True, text=True, check=True
        ).stdout
        if int(said.split()[1]) != size:
            sys.exit(f"error: ns-3: found {said.split()[1]} bytes at the sink; expected {size}.")

    return run


def table(contenders: list[Contender]) -> Table:
    """Wall seconds by contender, and the marginal cost as a ratio to that of ns-3."""
    columns = ("", "4 MB, wall s", "40 MB, wall s", "36 MB more, wall s", "ratio to ns-3")
    made = Table(*columns, title=f"What a longer transfer costs beside ns-3 (least of {ROUNDS} rounds on one core)")
    ns3_s = contenders[0].marginal_s if contenders[0].name not in LABS else None
    for contender in contenders:
        made.add_row(
            contender.name,
            *(f"{contender.best_s[size]:.2f}" for size in SIZES),
            f"{contender.marginal_s:.2f}",
            f"{contender.marginal_s / ns3_s:.2f}" if ns3_s else "–",
        )
    return made


main()
