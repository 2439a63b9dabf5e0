"""What whole runs cost, as a user starts them: without kept results, and one whose results are all kept."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from meter import Cost, Meter, console, take_in_orphans
from rich.table import Table

from scpslab import scenario
from scpslab.scenario import planning
from scpslab.scenario.campaign import Member, is_campaign, load_campaign
from scpslab.scenario.planning import expected
from scpslab.scenario.topologies import OnDisk

SWEEP = ("links/transfer", "--set", "workloads.transfer.size=20 kB", "--set", "repeats=334")
RUNS: dict[str, tuple[str, ...]] = {
    "make demo": ("fy97/fig04:kernel-demo",),
    "sweep of 1,002 cells": SWEEP,
    "campaigns/papers:quick": ("campaigns/papers:quick",),
}
KNOWN = "links/transfer, all results known"


def main() -> None:
    """One after the other, and the table."""
    take_in_orphans()
    title = "What whole runs cost, on all cores"
    table = Table("", "cells", "expected CPU s", "CPU s", "wall s", "idle core s", title=title)
    for name, words in RUNS.items():
        cells, cost = run(*words, "--no-cache")
        idle_s = len(os.sched_getaffinity(0)) * cost.wall_s - cost.processor_s
        row = f"{expected_s(words):.0f}", f"{cost.processor_s:.1f}", f"{cost.wall_s:.1f}", f"{idle_s:.1f}"
        table.add_row(name, str(cells), *row)
    run("links/transfer")
    cells, cost = run("links/transfer")
    table.add_row(KNOWN, str(cells), "–", f"{cost.processor_s:.1f}", f"{cost.wall_s:.1f}", "–")
    console().print(table)


def run(*words: str) -> tuple[int, Cost]:
    """The cells of a run, which has to complete, and what it took."""
    with tempfile.TemporaryDirectory(prefix="scpslab-bench-") as folder:
        command = [sys.executable, "-m", "scpslab", "run", *words, "--out", folder]
        with Meter() as meter:
            ended = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if ended.returncode:
            sys.exit(
                f"error: {' '.join(words)}: found exit status {ended.returncode}; "
                f"expected a run that completes.\n{ended.stderr}"
            )
        return sum(1 for _ in Path(folder).glob("**/status.json")), meter.cost


def expected_s(words: tuple[str, ...]) -> float:
    """What `scpslab plan --cost` expects of all cells, knowing no run."""
    name, overrides = words[0], [word for word in words[1:] if word != "--set"]
    members = load_campaign(name).members if is_campaign(name) else [Member(name, ())]
    cells = [scenario.cells(member.load(overrides, OnDisk(is_trusted=False))) for member in members]
    return sum(expected(plan).wall_s for one in cells for plan in planning.plans(one).values())


main()
