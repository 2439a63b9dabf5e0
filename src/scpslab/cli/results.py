"""`scpslab results`: the results of a run as a table, CSV or JSON."""

from typing import Annotated

import typer

from scpslab.analysis.table import read_results, report, summarise
from scpslab.cli.options import RunArgument, split
from scpslab.cli.tables import Format, FormatOption, print_report
from scpslab.cli.terminal import warn
from scpslab.runs import find_run


def results(
    run: RunArgument = "last",
    format_: FormatOption = Format.TABLE,
    by: list[str] | None = None,
    metric: list[str] | None = None,
    rebuild: Annotated[bool, typer.Option("--rebuild")] = False,
) -> None:
    """Show the results of a run: means with intervals.

    The table has the mean ± 95 % Student-t interval for each point of the sweep, and the number of completed transfers.
    Incomplete transfers are counted, never averaged in. RUN/results.csv has a row per cell; "scpslab docs columns"
    explains its columns.

    Examples: scpslab results last · scpslab results last --by stack --metric transfer_s,rtos · scpslab results last
    --format csv > means.csv

    Options:
        by: Group by this axis; repeat, or separate with commas. Default: every swept axis.
        metric: Show this column of results.csv; repeat the option, or separate columns with commas.
        rebuild: Derive results.csv from the raw files again, even if it is current.
    """
    summary = summarise(read_results(find_run(run), rebuild=rebuild, warn=warn), split(by), split(metric))
    print_report(report(summary, is_narrow=not metric), format_)
