"""The commands of a course, which the program scpslab finds by name, and what several of them have; no rules."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Annotated

import typer

Instructors = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        envvar="SCPSLAB_INSTRUCTORS",
        help="The instructors' archive, or the folder in it. Assignments with a folder instructor/ need none.",
    ),
]
AnAssignment = Annotated[
    str, typer.Argument(metavar="NAME", help="An assignment of the project, or the folder of another one.")
]
CourseFolder = Annotated[Path, typer.Option(metavar="FOLDER", help="The course's folder.")]
IssuedTerm = Annotated[
    str | None, typer.Option(help="The term for which the variants were issued. Default: course.yaml's.")
]


def now() -> str:
    """The time of this machine, as logs and formats of grades have it."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
