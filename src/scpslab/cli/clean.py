"""`scpslab clean`: give back the room the lab takes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from scpslab.errors import UsageError
from scpslab.setup import cache_dir

CACHE_PARTS = {"results": ("results",), "images": ("kernel", "guest", "tools", "stack", "boot", "lab")}


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("clean")(clean)


def clean(
    results: Annotated[bool, typer.Option("--results", help="Remove cached results of cells.")] = False,
    images: Annotated[bool, typer.Option("--images", help="Remove the built kernel, guest image and programs; the next run builds them again.")] = False,
    runs: Annotated[Path | None, typer.Option(help="Remove unfinished cells (*.part) in this folder of runs.")] = None,
) -> None:
    """Removes what can be made again: cached results, built images, unfinished cells. Run folders are yours and stay.

    A lab in engines virtual and live is one process: when it ends, nothing of it is left in the system.
    """
    if not (results or images or runs):
        raise UsageError("clean: found no option; expected --results, --images or --runs DIR. Say what to remove.")
    for wanted, part in ((results, "results"), (images, "images")):
        for name in CACHE_PARTS[part] if wanted else ():
            _remove(cache_dir() / name)
    if runs:
        for folder in sorted(runs.glob("*/cells/*.part")):
            _remove(folder)


def _remove(path: Path) -> None:
    if path.exists():
        shutil.rmtree(path)
        typer.echo(f"removed {path}")
