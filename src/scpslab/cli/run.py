"""`scpslab run`: runs a scenario; `scpslab demo`, which runs a certain one; `scpslab verify`, which runs an archive
or a run again and compares every byte.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from scpslab import analysis as results
from scpslab.analysis import checks, figures
from scpslab.cli.options import Jobs, Settings, engine_choice, max_wall
from scpslab.cli.plan import Scenario
from scpslab.cli.progress import ConsoleProgress
from scpslab.cli.tables import plain_console, print_table, table_console
from scpslab.cli.terminal import printable, warn
from scpslab.core.errors import FAILED_EXIT, ResultError, UsageError, harmless
from scpslab.core.folders import somebody_elses
from scpslab.engine import DEFAULT, ENGINES
from scpslab.running import RunOptions, run_campaign, run_scenario
from scpslab.running.runner import RunResult
from scpslab.running.verify import LONGEST_WALL_S, Sample, Verification
from scpslab.running.verify import verify as run_again
from scpslab.runs import find_run
from scpslab.runs.run import RUNS
from scpslab.scenario.campaign import campaign_path, is_campaign, load_campaign
from scpslab.scenario.load import find

# The FY97 corruption experiment, in its small variant.
DEMO = "start/demo"
ENGINE = engine_choice(ENGINES, "Engine to run cells in")


def run(  # typer calls it by name
    scenario: Scenario,
    engine: Annotated[str, ENGINE] = DEFAULT,
    jobs: Jobs = None,
    cache: Annotated[bool, typer.Option("--cache/--no-cache")] = True,
    snapshots: Annotated[bool, typer.Option("--snapshots/--no-snapshots")] = True,
    out: Path = RUNS,
    set_: Settings = None,
    trust: Annotated[bool, typer.Option("--trust")] = False,
    cluster: Annotated[str | None, typer.Option(metavar="ADDRESS")] = None,
) -> None:
    """Run a scenario or campaign; repeat the command to resume.

    The command runs every cell, draws the figures and prints the run folder last. It is safe to interrupt: finished
    cells are kept. A campaign (campaigns/papers) runs several scenarios; its folder links to their runs, and "scpslab
    report" makes one page of them. "scpslab docs scale" explains runs on several machines (--cluster).

    Examples: scpslab run fy97/fig04:kernel-demo · scpslab run fy97/fig04:kernel-test --set sweep.stack=fy97-reno

    Options:
        cache: Take results of identical cells from the cache, or run every cell again.
        snapshots: Engine virtual: set up each network once and fork it for its cells, or boot every cell. Same results.
        out: The folder for run folders.
        trust: Run files that others own or may write: a topology's file with your rights, in engine host commands as
            root.
        cluster: Run cells on the workers of the Dask scheduler at this address, such as tls://head:8786.
    """
    console = table_console(stderr=True)
    if ENGINES[engine].reach:
        check_consent(engine, scenario, trust, console)
    options = RunOptions(
        engine=engine,
        jobs=jobs,
        cluster=cluster,
        use_cache=cache,
        snapshots=snapshots,
        out=out,
        overrides=set_ or [],
        trust=trust,
    )
    listeners = [ConsoleProgress(console, jobs, is_here=cluster is None)]
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


def demo(out: Annotated[Path, typer.Option(metavar="FOLDER")] = RUNS) -> None:
    """Run a small experiment: a table and a figure.

    The command runs the scenario start/demo: TCP of 1997, CUBIC, BBR and SCPS-TP over a geostationary link that is
    clean, has bit errors, or is shared with others; 72 transfers in virtual time. Open the figure: bit errors slow TCP
    down far more than congestion does.

    Examples: scpslab demo

    Options:
        out: The folder for run folders.
    """
    run(DEMO, out=out)
    typer.echo(f"Next: scpslab docs tour. Each packet, in a browser: scpslab studio {find_run('last', out)}", err=True)


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
        verdicts = checks.evaluate(result.folder, result.checks)
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
            expected = f"expected a file that you or root own and nobody else may write, because {reach}"
            advice = f"Read it, then run it with --trust; or run it with --engine {DEFAULT}, where it can do no harm."
            raise UsageError(f"{path}: found {found}; {expected}. {advice}")


def _files(scenario: str) -> list[Path]:
    """The files from which a run takes commands: the scenario, or the campaign and its scenarios."""
    campaign = campaign_path(scenario) if is_campaign(scenario) else None
    names = [scenario] if campaign is None else [member.name for member in load_campaign(scenario).members]
    scenarios = [find(name if Path(name).is_file() else name.partition(":")[0]) for name in names]
    return scenarios if campaign is None else [campaign, *scenarios]


MOST_SHOWN = 20


def verify(
    archive: Annotated[str, typer.Argument(metavar="ARCHIVE")],
    sample: Annotated[str | None, typer.Option(metavar="SHARE")] = None,
    jobs: Jobs = None,
    keep: Annotated[Path | None, typer.Option(callback=printable)] = None,
    wall_s: Annotated[
        int, max_wall("Refuse the archive if one of its cells may take longer than this on the wall clock.")
    ] = LONGEST_WALL_S,
    trust: Annotated[bool, typer.Option("--trust")] = False,
) -> None:
    """Run an archive or a run again, and compare every byte.

    An archive whose files are not those that it lists is refused. The cells run in virtual time. Then every file under
    cells/, and results.csv, is compared with the digests in the archive, and every plan with the plan that the archived
    scenario gives. A topology of the archive's own is not run: the archive has its networks. Exit code 0: all bytes are
    the same. Exit code 1: some files differ, or plans contradict the scenario; the output names them and says whether
    kernel, guest image and lab program were the same.

    Examples: scpslab verify run.scpslab.tar.gz · scpslab verify last --sample 5%

    Options:
        archive: A file that "scpslab export" wrote, or a run: its folder, its name under runs/, or "last".
        sample: Run only some cells again, drawn anew each time: a share such as 5%, or a number.
        keep: Keep the re-run in this folder. Default: remove it after the comparison.
        trust: Run the archive's own topologies, which are Python code with your rights. Read them first.
    """
    path = Path(archive) if Path(archive).is_file() else find_run(archive)
    taken = Sample.parse(sample) if sample else None
    compared = run_again(
        path, RunOptions(jobs=jobs, trust=trust), [ConsoleProgress(plain_console(stderr=True))], keep, wall_s, taken
    )
    for comparison in compared:
        _say(comparison)
    if not all(comparison.is_same for comparison in compared):
        raise typer.Exit(FAILED_EXIT)


def _say(comparison: Verification) -> None:
    if comparison.is_same:
        for note in comparison.notes:
            typer.echo(harmless(f"{comparison.run}: {note}"))
        typer.echo(
            f"{comparison.run}: the same bytes in all {len(comparison.same)} files of {_cells(comparison)}, from "
            "the plans that its scenario gives"
        )
        return
    found = (
        ("contradiction", comparison.contradictions),
        ("differs", comparison.different),
        ("missing", comparison.missing),
        ("new", comparison.new),
    )
    for what, names in found:
        for name in names[:MOST_SHOWN]:
            typer.echo(f"{comparison.run}: {what}: {name}")
        if len(names) > MOST_SHOWN:
            typer.echo(f"{comparison.run}: {what}: {len(names) - MOST_SHOWN} more")
    if comparison.because:
        typer.echo(f"{comparison.run}: {comparison.because}")
    are = f"are {'' if comparison.has_same_engine else 'not all '}the same as in the archived run"
    typer.echo(
        f"{comparison.run}: {len(comparison.same)} files of {_cells(comparison)} are the same; "
        f"kernel, guest image and lab program {are}"
    )


def _cells(comparison: Verification) -> str:
    number = len(comparison.cells)
    return f"{number} of {comparison.of} cells" if number < comparison.of else f"all {number} cells"
