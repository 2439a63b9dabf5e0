"""`scpslab report`: one page about a run or a campaign."""

from pathlib import Path

import typer

from scpslab.analysis.report import Embedded, write_report
from scpslab.analysis.run import open_run
from scpslab.analysis.table import read_results
from scpslab.cli.options import RunOrCampaign
from scpslab.cli.terminal import warn
from scpslab.runs import RunFolder, find_run, is_campaign
from scpslab.studio.page import RunPages, script_source

# Bytes of the page of a cell, for a report that can be sent.
LARGEST_PAGE = 1_200_000


def report(run: RunOrCampaign = "last") -> None:
    """Write one page about a run or campaign: RUN/report.html.

    The page has the main figure and key numbers first, then tables with intervals, figures, the verdicts on the papers'
    findings (for a campaign all findings, for a single run those that the run has data for), and how it was made. It is
    one file that fetches nothing: you can send it to somebody, print it, or read it on a phone. The packets of the most
    telling cells of a run are in it, as the studio shows them; no other script runs.

    Examples: scpslab report last
    """
    folder = find_run(run)
    if not is_campaign(folder):
        # A folder without a manifest is no run: nothing is written there.
        RunFolder(folder).manifest()
    typer.echo(write_report(folder, warn, None if is_campaign(folder) else _embedded(folder)))


def _embedded(folder: Path) -> Embedded | None:
    """The page of the run's most telling cells, as many as can be sent."""
    # Whoever collects the results first has the warnings.
    read_results(folder, warn=warn)
    pages = RunPages([open_run(folder)])
    page = pages.telling(LARGEST_PAGE)
    return Embedded(page.entries[0].id, page.html, script_source()) if page else None
