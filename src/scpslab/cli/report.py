"""`scpslab report`: one page of a run or a campaign."""

from __future__ import annotations

from typing import Annotated

import typer

from scpslab.report import write_report
from scpslab.runfolder import find_run


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("report")(report)


def report(
    run: Annotated[str, typer.Argument(metavar="RUN", help='A run or campaign: a folder, its name under runs/, or "last" for the newest.')] = "last",
) -> None:
    """Writes RUN/report.html and prints its path: tables with intervals, figures, and what became of the papers' findings.

    One file without script that fetches nothing: send it to somebody, or read it on a phone. Of a single run those findings are shown that it
    has data for, of a campaign all.
    """
    typer.echo(write_report(find_run(run)))
