"""`scpslab demo`: the first thing to run, the same in a clone, with the wheel and in the Docker image."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scpslab.cli.run import run
from scpslab.runs.run import RUNS

# The FY97 corruption experiment, in its small variant.
SCENARIO = "fy97/fig04:kernel-demo"


def demo(out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder for run folders.")] = RUNS) -> None:
    """Run a small experiment: a table and a figure.

    The command runs the scenario fy97/fig04:kernel-demo: TCP of 1997, CUBIC and BBR on a geostationary link with
    bit errors, 120 transfers in virtual time. Open the figure: TCP gets slower and slower as bit errors increase.

    Examples: scpslab demo
    """
    run(SCENARIO, out=out)
