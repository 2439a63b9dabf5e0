"""`scpslab merge`: makes one run of its shards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scpslab.running.merge import merge as make_one


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("merge")(merge)


def merge(
    shards: Annotated[
        list[Path],
        typer.Argument(metavar="SHARD...", help='The folders of all shards, as "scpslab run --shard k/n" has printed them.', exists=True, file_okay=False),
    ],
    out: Annotated[Path | None, typer.Option(help="The run folder to make. Default: the folder that a whole run has.")] = None,
) -> None:
    """Make one run of its shards.

    All files under cells/, results.csv and scenario.resolved.yaml have the bytes of a run on one machine. So has manifest.json but for machine and program,
    which are those of the first shard, and wall_s, which is that of the longest. Shards of one campaign become a campaign. The shards stay as they are.

    Shards that are missing, there twice, not finished, or of another run or build are refused. Prints the folder of the run.
    """
    typer.echo(make_one(shards, out)[-1])
