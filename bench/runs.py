"""What whole runs cost, as a user starts them, without kept results."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from meter import Meter, take_in_orphans
from rich.console import Console
from rich.table import Table

SWEEP = ("links/transfer", "--set", "workloads.transfer.size=20 kB", "--set", "repeats=334")
RUNS: dict[str, tuple[str, ...]] = {
    "make demo": ("fy97/fig04:kernel-demo",),
    "sweep of 1,002 cells": SWEEP,
    "campaigns/papers:quick": ("campaigns/papers:quick",),
}


def main() -> None:
    """One after the other, and the table."""
    take_in_orphans()
    table = Table("", "cells", "wall s", "CPU s", "cells per s", title="whole runs, on all cores")
    for name, words in RUNS.items():
        with tempfile.TemporaryDirectory(prefix="scpslab-bench-") as folder:
            command = [sys.executable, "-m", "scpslab", "run", *words, "--no-cache", "--out", folder]
            with Meter() as meter:
                ended = subprocess.run(
                    command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False
                )
            if ended.returncode:
                sys.exit(
                    f"error: {' '.join(words)}: found exit status {ended.returncode}; "
                    f"expected a run that completes.\n{ended.stderr}"
                )
            cells = sum(1 for _ in Path(folder).glob("**/status.json"))
        cost = meter.cost
        table.add_row(name, str(cells), f"{cost.wall_s:.1f}", f"{cost.processor_s:.1f}", f"{cells / cost.wall_s:.1f}")
    Console().print(table)


main()
