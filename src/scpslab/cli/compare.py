"""`scpslab compare`: the differences between runs, or between the values of an axis of one run."""

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
    run: Annotated[list[str], typer.Argument(metavar="RUN...")],
    axis: str | None = None,
    against: str | None = None,
    all_pairs: Annotated[bool, typer.Option("--all-pairs")] = False,
    by: list[str] | None = None,
    metric: list[str] | None = None,
    test: Method = Method.MEANS,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Compare runs, or the values of one axis, point by point.

    The table has differences and ratios with 95 % intervals, and p corrected for the number of comparisons (Holm).
    Cells that met the same errors and traffic are compared in pairs. Where a transfer did not complete, an exact test
    compares the numbers of completed transfers.

    Examples: scpslab compare last --axis stack --against cubic · scpslab compare RUN1 RUN2 RUN3 --metric transfer_s

    Options:
        run: Run folders, their names under runs/, or "last"; one run with --axis.
        axis: Compare the values of this axis within one run, for example stack.
        against: With --axis: the value with which the others are compared. Default: the first in results.csv.
        all_pairs: Compare each run or value with every other, not only with the first.
        by: Compare at the values of this axis; repeat, or separate with commas. Default: all other axes.
        metric: Compare this column of results.csv; repeat the option, or separate columns with commas.
        test: means: Student's and Welch's tests. ranks: Wilcoxon's exact tests, which assume no distribution.
    """
    options = comparing.Options(split(by), split(metric), test, all_pairs)
    runs = [read_results(find_run(name), warn=warn) for name in run]
    if axis is None:
        if against is not None:
            advice = "Runs are compared with the first that is named."
            raise UsageError(f'--against: found "{against}" without --axis; expected an axis too. {advice}')
        print_report(compare_texts.report(comparing.compare_runs(runs, options)), format_)
        return
    if len(runs) > 1:
        expected = "expected one, whose cells are compared with each other. Name one run, or leave --axis out."
        raise UsageError(f"--axis: found {len(runs)} runs; {expected}")
    print_report(compare_texts.report(comparing.compare_axis(runs[0], axis, against, options)), format_)
