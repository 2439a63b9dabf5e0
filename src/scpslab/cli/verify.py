"""`scpslab verify`: runs an exported run again and compares every byte."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scpslab.cli.options import Jobs, max_wall
from scpslab.cli.progress import ConsoleProgress
from scpslab.cli.tables import plain_console
from scpslab.cli.terminal import printable
from scpslab.core.errors import FAILED_EXIT
from scpslab.core.harmless import harmless
from scpslab.running import RunOptions
from scpslab.running.verify import LONGEST_WALL_S, Sample, Verification
from scpslab.running.verify import verify as run_again
from scpslab.runs import find_run

MOST_SHOWN = 20


def verify(
    archive: Annotated[
        str,
        typer.Argument(
            metavar="ARCHIVE",
            help='A file that "scpslab export" wrote, or a run: its folder, its name under runs/, or "last".',
        ),
    ],
    sample: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE", help="Run only some cells again, drawn anew each time: a share such as 5%, or a number."
        ),
    ] = None,
    jobs: Jobs = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            callback=printable, help="Keep the re-run in this folder. Default: remove it after the comparison."
        ),
    ] = None,
    wall_s: Annotated[
        int, max_wall("Refuse the archive if one of its cells may take longer than this on the wall clock.")
    ] = LONGEST_WALL_S,
    trust: Annotated[
        bool,
        typer.Option(
            "--trust", help="Run the archive's own topologies, which are Python code with your rights. Read them first."
        ),
    ] = False,
) -> None:
    """Run an archive or a run again, and compare every byte.

    An archive whose files are not those that it lists is refused. The cells run in virtual time. Then every file under
    cells/, and results.csv, is compared with the digests in the archive, and every plan with the plan that the archived
    scenario gives. A topology of the archive's own is not run: the archive has its networks. Exit code 0: all bytes are
    the same. Exit code 1: some files differ, or plans contradict the scenario; the output names them and says whether
    kernel, guest image and lab program were the same.

    Examples: scpslab verify run.scpslab.tar.gz · scpslab verify last --sample 5%
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
    cause = (
        "the same as in the archived run" if comparison.has_same_engine else "not all the same as in the archived run"
    )
    typer.echo(
        f"{comparison.run}: {len(comparison.same)} files of {_cells(comparison)} are the same; "
        f"kernel, guest image and lab program are {cause}"
    )


def _cells(comparison: Verification) -> str:
    number = len(comparison.cells)
    return f"{number} of {comparison.of} cells" if number < comparison.of else f"all {number} cells"
