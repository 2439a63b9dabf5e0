"""`scpslab run`: run a scenario."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from scpslab import analysis as results
from scpslab.analysis import figures
from scpslab.cli.consent import ask_for_host
from scpslab.cli.notes import warn
from scpslab.cli.options import Jobs
from scpslab.cli.progress import ConsoleProgress
from scpslab.cli.tables import print_summary, table_console
from scpslab.cli.validate import todays_name
from scpslab.core.choices import one_of
from scpslab.core.errors import ResultError, UsageError
from scpslab.engine import ENGINES
from scpslab.engine.host import HostEngine
from scpslab.running import RunOptions, run_campaign, run_scenario
from scpslab.running.command import DEFAULT_ENGINE
from scpslab.running.executors import EXECUTORS
from scpslab.running.runner import RunResult
from scpslab.running.shard import Shard
from scpslab.scenario.campaign import is_campaign

FAILED_CELLS_EXIT = 1


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("run")(run)


def run(  # typer calls it by name
    scenario: Annotated[str, typer.Argument(help="A scenario or campaign by name or path; :VARIANT chooses a variant of it, e.g. fy97/fig04:kernel-demo.")],
    engine: Annotated[
        str, typer.Option(help="Engine to run cells in: virtual (fast, reproducible), live (wall clock) or host (wall clock, this machine's kernel, root).")
    ] = DEFAULT_ENGINE,
    jobs: Jobs = None,
    cache: Annotated[bool, typer.Option("--cache/--no-cache", help="Take results of identical cells from the cache, or run every cell again.")] = True,
    snapshots: Annotated[
        bool,
        typer.Option(
            "--snapshots/--no-snapshots",
            help="Engine virtual: set up each network once and fork it for its cells, or boot every cell. Same results.",
        ),
    ] = True,
    out: Annotated[Path, typer.Option(help="The folder for run folders.")] = Path("runs"),
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override one value of the scenario, e.g. workloads.transfer.size='100 kB'; may be repeated."),
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Run files that others own or may write: a topology's file with your rights, in engine host commands as root.")
    ] = False,
    shard: Annotated[
        str | None, typer.Option(metavar="K/N", help="Run only part K of N, and keep its results; a run without it takes them all (docs/scale.md).")
    ] = None,
    executor: Annotated[str, typer.Option(help="Where cells run: local (this machine) or dask (the workers of --cluster).")] = "local",
    cluster: Annotated[
        str | None,
        typer.Option(metavar="CLUSTER", help="With --executor dask: a scheduler's address, or local (docs/scale.md)."),
    ] = None,
) -> None:
    """Run a scenario or campaign; repeat the command to resume.

    The command runs every cell, draws the figures and prints the run folder last. It is safe to interrupt: finished cells are kept.
    A campaign (campaigns/papers) runs several scenarios; its folder links to their runs, and "scpslab report" makes one page of them.
    """
    if engine not in ENGINES:
        raise UsageError(f'--engine: found "{engine}"; expected one of {", ".join(ENGINES)}. Choose one of these.')
    if executor not in EXECUTORS:
        raise UsageError(f'--executor: found "{executor}"; {one_of(executor, EXECUTORS)}')
    console = table_console(stderr=True)
    if engine == HostEngine.name:
        ask_for_host(scenario, trust, console)
    options = RunOptions(engine=engine, jobs=jobs, use_cache=cache, snapshots=snapshots, out=out, overrides=list(set_ or []), trust=trust)
    options = replace(options, shard=Shard.parse(shard) if shard else None, executor=executor, cluster=cluster)
    listeners = [ConsoleProgress(console, jobs, is_here=executor == "local")]
    scenario = todays_name(scenario)
    if is_campaign(scenario):
        campaign = run_campaign(scenario, options, listeners)
        typer.echo(campaign.folder)
        is_good = not campaign.failed
    else:
        result = run_scenario(scenario, options, listeners)
        # A shard has no table or figure of its own.
        is_good = (bool(options.shard) or _show(result, console)) and not result.failed
        typer.echo(result.folder)
    if not is_good:
        raise typer.Exit(FAILED_CELLS_EXIT)


def _show(result: RunResult, console: Console) -> bool:
    """Shows a run's table, checks and figures; returns whether the checks hold."""
    print_summary(results.table.summarise(results.table.read_results(result.folder)), console)
    holds = _checks_hold(result, console)
    for picture in figures.draw(result.folder, warn=warn):
        if picture.suffix == ".png":
            console.print(f"figure: {picture}", highlight=False, soft_wrap=True)
    return holds


def _checks_hold(result: RunResult, console: Console) -> bool:
    """Shows the checks. What cannot be checked does not hold, and costs nothing else of what is shown."""
    try:
        verdicts = results.checks.evaluate(result.folder, result.checks)
    except ResultError as error:
        warn(str(error))
        return False
    for verdict in verdicts:
        console.print(str(verdict), highlight=False, soft_wrap=True)
    return not any(verdict.missed for verdict in verdicts)
