"""`scpslab run`: runs a scenario; and `scpslab demo`, which runs a certain one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from scpslab import analysis as results
from scpslab.analysis import figures
from scpslab.cli.options import Jobs, Settings, choice, engine_choice
from scpslab.cli.progress import ConsoleProgress
from scpslab.cli.tables import print_table, table_console
from scpslab.cli.terminal import warn
from scpslab.cli.validate import Scenario
from scpslab.core.errors import FAILED_EXIT, ResultError, UsageError
from scpslab.core.folders import somebody_elses
from scpslab.engine import DEFAULT, ENGINES
from scpslab.running import RunOptions, run_campaign, run_scenario
from scpslab.running.run_plan import EXECUTORS
from scpslab.running.runner import RunResult
from scpslab.runs import find_run
from scpslab.runs.run import RUNS
from scpslab.scenario.campaign import campaign_path, is_campaign, load_campaign
from scpslab.scenario.load import find

# The FY97 corruption experiment, in its small variant.
DEMO = "fy97/fig04:kernel-demo"
ENGINE = engine_choice(ENGINES, "Engine to run cells in")
WHERE = "Where cells run: local (this machine) or dask. Default: dask with --cluster, local without."
EXECUTOR = choice("--executor", EXECUTORS, WHERE)


def run(  # typer calls it by name
    scenario: Scenario,
    engine: Annotated[str, ENGINE] = DEFAULT,
    jobs: Jobs = None,
    cache: Annotated[
        bool,
        typer.Option(
            "--cache/--no-cache", help="Take results of identical cells from the cache, or run every cell again."
        ),
    ] = True,
    snapshots: Annotated[
        bool,
        typer.Option(
            "--snapshots/--no-snapshots",
            help="Engine virtual: set up each network once and fork it for its cells, or boot every cell. "
            "Same results.",
        ),
    ] = True,
    out: Annotated[Path, typer.Option(help="The folder for run folders.")] = RUNS,
    set_: Settings = None,
    trust: Annotated[
        bool,
        typer.Option(
            "--trust",
            help="Run files that others own or may write: a topology's file with your rights, in engine host "
            "commands as root.",
        ),
    ] = False,
    executor: Annotated[str | None, EXECUTOR] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="CLUSTER",
            help="Run cells on the workers of the Dask scheduler at this address; local: on this machine.",
        ),
    ] = None,
) -> None:
    """Run a scenario or campaign; repeat the command to resume.

    The command runs every cell, draws the figures and prints the run folder last. It is safe to interrupt: finished
    cells are kept. A campaign (campaigns/papers) runs several scenarios; its folder links to their runs, and "scpslab
    report" makes one page of them. "scpslab docs scale" explains runs on several machines (--cluster).

    Examples: scpslab run fy97/fig04:kernel-demo · scpslab run fy97/fig04:kernel-test --set sweep.stack=fy97-reno
    """
    console = table_console(stderr=True)
    executor = executor or ("dask" if cluster else "local")
    if ENGINES[engine].reach:
        check_consent(engine, scenario, trust, console)
    options = RunOptions(
        engine=engine,
        jobs=jobs,
        executor=executor,
        cluster=cluster,
        use_cache=cache,
        snapshots=snapshots,
        out=out,
        overrides=set_ or [],
        trust=trust,
    )
    listeners = [ConsoleProgress(console, jobs, is_here=executor == "local")]
    if is_campaign(scenario):
        campaign = run_campaign(scenario, options, listeners)
        typer.echo(campaign.folder)
        # All of them are shown.
        missed = [run for run in campaign.runs if run.checks and not _checks_hold(run, console)]
        is_good = not missed and not campaign.failed
    else:
        result = run_scenario(scenario, options, listeners)
        is_good = _show(result, console) and not result.failed
        typer.echo(result.folder)
    if not is_good:
        raise typer.Exit(FAILED_EXIT)


def demo(out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder for run folders.")] = RUNS) -> None:
    """Run a small experiment: a table and a figure.

    The command runs the scenario fy97/fig04:kernel-demo: TCP of 1997, CUBIC and BBR on a geostationary link with
    bit errors, 120 transfers in virtual time. Open the figure: TCP gets slower and slower as bit errors increase.

    Examples: scpslab demo
    """
    run(DEMO, out=out)
    typer.echo(f"To see every packet in a browser: scpslab studio {find_run('last', out)}", err=True)


def _show(result: RunResult, console: Console) -> bool:
    """Shows a run's table, checks and figures; returns whether the checks hold."""
    print_table(results.table.narrow(result.folder), console)
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
        console.print(f"{result.folder.name}: {verdict}", highlight=False, soft_wrap=True)
    return not any(verdict.missed for verdict in verdicts)


def check_consent(engine: str, scenario: str, is_trusted: bool, console: Console) -> None:
    """Says what an engine lets a scenario do, and refuses a file that anybody but root and the user owns or may write.

    Raises:
        UsageError: there is such a file, and the user has not given --trust.
    """
    reach = ENGINES[engine].reach
    console.print(f"engine {engine}: {reach} (scpslab docs security).", highlight=False)
    for path in _files(scenario):
        if not is_trusted and (found := somebody_elses(path)):
            raise UsageError(
                f"{path}: found {found}; expected a file that you or root own and nobody else may write, because "
                f"{reach}. "
                f"Read it, then run it with --trust; or run it with --engine {DEFAULT}, where it can do no harm."
            )


def _files(scenario: str) -> list[Path]:
    """The files from which a run takes commands: the scenario, or the campaign and its scenarios."""
    campaign = campaign_path(scenario) if is_campaign(scenario) else None
    if campaign is None:
        return [_scenario_file(scenario)]
    return [campaign, *(_scenario_file(member.name) for member in load_campaign(scenario).members)]


def _scenario_file(name: str) -> Path:
    return find(name if Path(name).is_file() else name.partition(":")[0])
