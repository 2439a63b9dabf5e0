"""`scpslab compare`: the differences between runs, or between the values of an axis of one run."""

from __future__ import annotations

from typing import Annotated

import typer

from scpslab.analysis import compare as comparing
from scpslab.analysis import compare_texts
from scpslab.analysis.effects import Method
from scpslab.analysis.table import read_results
from scpslab.cli.options import split
from scpslab.cli.tables import Format, FormatOption, print_report
from scpslab.cli.terminal import warn
from scpslab.core.errors import UsageError
from scpslab.runs import find_run


def compare(
    run: Annotated[
        list[str],
        typer.Argument(metavar="RUN...", help='Run folders, their names under runs/, or "last"; one run with --axis.'),
    ],
    axis: Annotated[
        str | None, typer.Option(help="Compare the values of this axis within one run, for example stack.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="With --axis: the value with which the others are compared. Default: the first in results.csv."
        ),
    ] = None,
    all_pairs: Annotated[
        bool, typer.Option("--all-pairs", help="Compare each run or value with every other, not only with the first.")
    ] = False,
    by: Annotated[
        list[str] | None,
        typer.Option(
            help="Compare at the values of this axis; repeat, or separate with commas. Default: all other axes."
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(help="Compare this column of results.csv; repeat the option, or separate columns with commas."),
    ] = None,
    test: Annotated[
        Method,
        typer.Option(
            help="means: Student's and Welch's tests. ranks: Wilcoxon's exact tests, which assume no distribution."
        ),
    ] = Method.MEANS,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Compare runs, or the values of one axis, point by point.

    The table has differences and ratios with 95 % intervals, and p corrected for the number of comparisons (Holm).
    Cells that met the same errors and traffic are compared in pairs. Where a transfer did not complete, an exact test
    compares the numbers of completed transfers.

    Examples: scpslab compare last --axis stack --against cubic · scpslab compare RUN1 RUN2 RUN3 --metric transfer_s
    """
    options = comparing.Options(split(by), split(metric), test, all_pairs)
    runs = [read_results(find_run(name), warn=warn) for name in run]
    if axis is None:
        if against is not None:
            raise UsageError(
                f'--against: found "{against}" without --axis; expected an axis too. '
                "Runs are compared with the first that is named."
            )
        print_report(compare_texts.report(comparing.compare_runs(runs, options)), format_)
        return
    if len(runs) > 1:
        raise UsageError(
            f"--axis: found {len(runs)} runs; expected one, whose cells are compared with each other. "
            "Name one run, or leave --axis out."
        )
    print_report(compare_texts.report(comparing.compare_axis(runs[0], axis, against, options)), format_)
