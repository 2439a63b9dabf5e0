"""`scpslab compare`: the differences between two runs."""

from __future__ import annotations

from typing import Annotated

import typer

from scpslab.cli.results import split
from scpslab.cli.tables import Format, print_numbers
from scpslab.results import compare as comparing
from scpslab.results.table import read_results
from scpslab.runfolder import find_run


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("compare")(compare)


def compare(
    first: Annotated[str, typer.Argument(metavar="RUN1", help='A run folder, its name under runs/, or "last".')],
    second: Annotated[str, typer.Argument(metavar="RUN2", help="The run to compare it with.")],
    by: Annotated[
        list[str] | None, typer.Option(help="Compare at the values of this axis; repeat, or separate with commas. Default: the axes of both.")
    ] = None,
    metric: Annotated[list[str] | None, typer.Option(help="Compare this column of results.csv; repeat the option, or separate columns with commas.")] = None,
    format_: Annotated[Format, typer.Option("--format", help="Output format: a table to read; csv or json for other programs.")] = Format.TABLE,
) -> None:
    """Compare two runs point by point.

    The table has the differences of means with Welch's 95 % interval, and p corrected for the number of comparisons. Where a transfer did
    not complete, Fisher's exact test compares the numbers of completed transfers.

    Example: scpslab compare fy97-fig04-kernel-demo-1a2b3c4d fy97-fig04-kernel-demo-5e6f7a8b --metric transfer_s
    """
    one, other = (read_results(find_run(run)) for run in (first, second))
    found = comparing.compare(one, other, split(by), split(metric))
    print_numbers(found, format_, comparing)
