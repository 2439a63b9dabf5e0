"""`scpslab course gradescope`: writes an autograder's archive for Gradescope."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from scpslab.cli.terminal import harmless, printable
from scpslab.core.errors import UsageError
from scpslab.core.scratch import scratch
from scpslab_course.autograder.build import check_emails, write_archive
from scpslab_course.autograder.wheels import collect
from scpslab_course.course.folder import load_course
from scpslab_course.course.issue import check_terms
from scpslab_course.course.roster import read_roster

# Ubuntu 22.04, which Gradescope takes unless told otherwise, and Debian 12 have packages of it.
PYTHON = ["3.11"]


def gradescope(
    name: Annotated[str, typer.Argument(metavar="NAME", help="An assignment of the course.")],
    out: Annotated[Path, typer.Option(metavar="FILE.zip", callback=printable, help="The archive to write.")],
    wheel: Annotated[Path, typer.Option(metavar="FILE", help='The wheel of scpslab: from which you have installed, or what "make wheel" makes in a clone.')],
    roster: Annotated[Path, typer.Option(metavar="FILE", help="The roster, with the column email: Gradescope says by e-mail who handed in.")],
    course: Annotated[Path, typer.Option(metavar="FOLDER", help="The course's folder.")] = Path(),
    term: Annotated[str | None, typer.Option(help="The term for which the variants were issued. Default: course.yaml's.")] = None,
    python: Annotated[list[str] | None, typer.Option(metavar="VERSION", help="A Python of the container; repeat the option. Default: 3.11.")] = None,
) -> None:
    """Write an autograder for Gradescope: upload the file as the assignment's autograder.

    The archive holds everything, so grading needs no network; the container needs Python, whose Debian packages its setup.sh installs if they are missing.
    The course's secret is not in it. Python packages are downloaded when the archive is made.
    """
    found = load_course(course)
    wanted = term or found.file.term
    check_terms(wanted)
    if name not in found.file.assignments:
        raise UsageError(f'{course}: found no assignment "{name}" in course.yaml; expected one of {", ".join(found.file.assignments) or "those that you add"}.')
    pythons = python or PYTHON
    for one in pythons:
        if re.fullmatch(r"3\.(1[1-9]|[2-9]\d)", one) is None:
            raise UsageError(f'--python: found "{one[:20]}"; expected a version from 3.11 on, such as 3.11.')
    if out.suffix != ".zip" or not out.parent.is_dir() or out.is_dir():
        raise UsageError(f"--out {out}: found no place for an archive; expected FILE.zip in a folder that is there.")
    assignment = found.assignment(name)
    students = read_roster(roster)
    check_emails(students)
    with scratch() as folder:
        size = write_archive(out, found, wanted, assignment, students, collect(wheel, pythons, folder))
    typer.echo(f"{size / 1e6:.1f} MB, {len(students)} students, Python {', '.join(pythons)}", err=True)
    typer.echo(harmless(str(out)))
