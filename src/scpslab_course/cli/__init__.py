"""The commands of a course, which the program scpslab finds by name, and what several of them have; no rules.

Options:
    instructors: The instructors' archive, or the folder in it. Assignments with a folder instructor/ need none.
    assignment: An assignment of the project, or the folder of another one.
    course: The course's folder.
"""

import datetime as dt
from pathlib import Path
from typing import Annotated

import typer

from scpslab.cli.options import texts

SAID = texts(__doc__)
Instructors = Annotated[
    Path | None, typer.Option(metavar="PATH", envvar="SCPSLAB_INSTRUCTORS", help=SAID["instructors"])
]
AnAssignment = Annotated[str, typer.Argument(metavar="NAME", help=SAID["assignment"])]
CourseFolder = Annotated[Path, typer.Option(metavar="FOLDER", help=SAID["course"])]


def now() -> str:
    """The time of this machine, as logs and formats of grades have it."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
