"""`scpslab image`: build an image of a node from something that is not part of this project."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from scpslab.errors import UsageError
from scpslab.setup import reference

SCPS_RI = "scps-ri"
SOURCE = "SCPSLAB_RI_SOURCE"


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("image")(image)


def image(
    name: Annotated[str, typer.Argument(help="The image: scps-ri, the SCPS reference implementation.")],
    source: Annotated[Path | None, typer.Option(help=f"Folder of your copy of its source (or {SOURCE}).")] = None,
) -> None:
    """Builds a Docker image of a host from a source that you have, and prints the image's name.

    scps-ri is the SCPS reference implementation by MITRE. Its source is not part of this project, and the image is for this machine alone. Hosts with the
    stack image use it in scenarios; images/scps-ri/README.md has its settings.
    """
    if name != SCPS_RI:
        raise UsageError(f'image: found "{name}"; expected {SCPS_RI}.')
    folder = source or (Path(os.environ[SOURCE]) if os.environ.get(SOURCE) else None)
    if folder is None:
        raise UsageError(f"image {name}: found neither --source nor {SOURCE}; expected the folder of your copy of the source.\n{reference.TERMS}")
    typer.echo(reference.build(folder, lambda text: typer.echo(text, err=True)))
