"""`scpslab cluster`: job scripts for the shards of a scenario."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from scpslab import planning
from scpslab.cli.validate import SCENARIO_HELP, SET_HELP, TRUST_HELP, todays_name
from scpslab.cluster import SCRIPTS, Job
from scpslab.documents.places import one_of
from scpslab.errors import UsageError
from scpslab.project import IS_INSTALLED, ROOT
from scpslab.running import RunOptions
from scpslab.running.build import Build
from scpslab.running.runner import ScenarioRun
from scpslab.running.shard import MOST
from scpslab.running.store import SHARED
from scpslab.scenario.campaign import is_campaign
from scpslab.server import SYSTEM_CACHE
from scpslab.setup import cache_dir

Scenario = Annotated[str, typer.Argument(metavar="SCENARIO", help=SCENARIO_HELP)]
Settings = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help=SET_HELP)]
Trust = Annotated[bool, typer.Option("--trust", help=TRUST_HELP)]


def register(app: typer.Typer) -> None:
    """Adds the commands to the program."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Print a job script that runs a scenario's shards on many machines.")
    group.command("script")(script)
    group.command("build")(build)
    app.add_typer(group, name="cluster")


def script(
    scheduler: Annotated[str, typer.Argument(metavar="SCHEDULER", help=f"One of {', '.join(SCRIPTS)}.")],
    scenario: Scenario,
    shards: Annotated[int, typer.Option(min=1, max=MOST, help="Number of shards. Schedulers like jobs of ten minutes and more.")] = 10,
    cores: Annotated[int, typer.Option(min=1, help="Cores of each shard; each runs a cell at a time.")] = 1,
    out: Annotated[Path, typer.Option(help="The folder for run folders, which the machines share.")] = Path("runs"),
    set_: Settings = None,
    trust: Trust = False,
) -> None:
    """Print a commented job script for Slurm, HTCondor or plain ssh.

    The script states the build of this machine; machines with another one refuse its shards. "scpslab merge" makes one run of them.

    Example: scpslab cluster script slurm fy97/fig04:kernel --shards 20 > fig04.sh; sbatch fig04.sh
    """
    if scheduler not in SCRIPTS:
        raise UsageError(f'SCHEDULER: found "{scheduler}"; {one_of(scheduler, SCRIPTS)}')
    run = _planned(scenario, set_ or [], trust=trust, out=out)
    words = tuple(shlex.split(run.asked["command"]))
    cost = planning.Cost.of(run.plans.values())
    memory_mib, programs = cost.memory_mib(cores), Path(sys.executable).parent if IS_INSTALLED else ROOT
    job = Job(run.name, words, len(run.cells), shards, cores, memory_mib, cost.busy_s, _places(), programs, out.resolve(), Path.cwd(), str(_build(run)))
    typer.echo(SCRIPTS[scheduler](job), nl=False)


def _places() -> tuple[tuple[str, str], ...]:
    """The folders that the user's shell names, which a job's shell does not know."""
    named = [(name, str(Path(folder).absolute())) for name in (SYSTEM_CACHE, SHARED) if (folder := os.environ.get(name))]
    return (("SCPSLAB_CACHE", str(cache_dir())), *named)


def build(scenario: Scenario, set_: Settings = None, trust: Trust = False) -> None:
    """Print what determines a scenario's results: digests of its plans, of the engine, and of kernel, guest image and stack.

    "scpslab run --build DIGESTS" on another machine refuses to run if that machine would give other results.
    """
    typer.echo(_build(_planned(scenario, set_ or [], trust=trust, out=Path("runs"))))


def _planned(scenario: str, settings: list[str], *, trust: bool, out: Path) -> ScenarioRun:
    name = todays_name(scenario)
    if is_campaign(name):
        raise UsageError(f"{scenario}: found a campaign; expected one of its scenarios. Make a job script for each.")
    return ScenarioRun(name, RunOptions(out=out, overrides=settings, trust=trust))


def _build(run: ScenarioRun) -> Build:
    run.engine.prepare(lambda text: typer.echo(text, err=True), run.plans.values())
    return Build.of(run.plans, run.engine)
