"""`scpslab report`: one page about a run or a campaign."""

from __future__ import annotations

import typer

from scpslab.analysis.report import write_report
from scpslab.cli.options import RunOrCampaign
from scpslab.cli.terminal import warn
from scpslab.runs import RunFolder, find_run, is_campaign


def report(
    run: RunOrCampaign = "last",
) -> None:
    """Write one page about a run or campaign: RUN/report.html.

    The page has the main figure and key numbers first, then tables with intervals, figures, the verdicts on the papers'
    findings (for a campaign all findings, for a single run those that the run has data for), and how it was made. It is
    one file without scripts that fetches nothing: you can send it to somebody, print it, or read it on a phone.

    Examples: scpslab report last
    """
    folder = find_run(run)
    if not is_campaign(folder):
        # A folder without a manifest is no run: nothing is written there.
        RunFolder(folder).manifest()
    typer.echo(write_report(folder, warn))
