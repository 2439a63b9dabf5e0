"""`scpslab grade`: grades submissions by running them again."""

from __future__ import annotations

import datetime as dt
import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from scpslab.cli.terminal import harmless
from scpslab.course.folder import load_course
from scpslab.course.roster import read_roster
from scpslab.course.secret import FILE as SECRET
from scpslab.errors import UsageError
from scpslab.grading import formats, grader
from scpslab.grading.formats import FORMATS, Facts
from scpslab.grading.grade import Grade, Status
from scpslab.grading.review import write_review
from scpslab.grading.submitters import read_submitters
from scpslab.names import file_label, file_name
from scpslab.running import RunOptions
from scpslab.running.events import Event, Note
from scpslab.scratch import replace_text, scratch

NO_GRADE_EXIT = 1
# The registry is the list.
Wanted = StrEnum("Wanted", {name: name for name in formats.NAMES})  # type: ignore[misc]
DEFAULT = Wanted("table")


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("grade")(grade)


def grade(
    submission: Annotated[list[Path], typer.Argument(metavar="SUBMISSION...", help='Files that "scpslab assignment submit" wrote.')],
    course: Annotated[Path, typer.Option(metavar="FOLDER", help="The course's folder. Its secret is used if it is there, and not needed.")] = Path(),
    term: Annotated[str | None, typer.Option(help="The term for which the variants were issued. Default: course.yaml's.")] = None,
    format_: Annotated[Wanted, typer.Option("--format", help=f"{'; '.join(f'{name}: {kind.says}' for name, kind in FORMATS.items())}.")] = DEFAULT,
    out: Annotated[Path | None, typer.Option(metavar="PATH", help="The file to write; with several submissions, a folder for formats of one each.")] = None,
    student: Annotated[str | None, typer.Option(metavar="ID", help="Who handed it in, as your platform knows it. For one submission.")] = None,
    submitters: Annotated[Path | None, typer.Option(metavar="FILE", help="The same for many: CSV with the columns file, student.")] = None,
    roster: Annotated[Path | None, typer.Option(metavar="FILE", help="The roster, for names and addresses in formats that have them.")] = None,
    review: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write a page for each submission and one for the class, for who marks.")] = None,
    cells: Annotated[int | None, typer.Option(min=0, help="Cells to choose from each submission and run again. Default: marking.yaml's regrade.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Number of cells to run at a time. Default: one per core.")] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Run every cell again, even if this machine has run it before.")] = False,
) -> None:
    """Grade submissions: run them again, compare the bytes, and mark the answers.

    The variant's signature, the plans and the log's chain are checked; cells are run again and every byte of theirs is compared.
    What is right comes from the grader's own runs by the instructor's scenarios, never from the submission. Texts are left to a person. Nothing of a submission
    is unpacked or run.
    Exit code 0: every submission has a grade. Exit code 1: some are held for a person, or cannot be graded; the output says why.
    """
    if student is not None and (len(submission) > 1 or submitters is not None):
        raise UsageError("--student: found several submissions, or --submitters; expected one submission. Use --submitters FILE for many.")
    found = load_course(course)
    known = {one.id: one for one in read_roster(roster)} if roster is not None else {}
    by = {submission[0]: student} if student is not None else read_submitters(submitters, submission) if submitters is not None else {}
    kind = FORMATS[format_.value]
    if kind.of_one and len(submission) > 1 and (out is None or out.is_file()):
        raise UsageError(f"--format {format_.value}: found {len(submission)} submissions; expected one, or --out FOLDER for a file each.")
    secret = found.secret() if (course / SECRET).exists() or (course / SECRET).is_symlink() else None
    with scratch() as folder:
        options = RunOptions(jobs=jobs, use_cache=not no_cache, out=folder)
        settings = grader.Settings(found, term or found.file.term, secret, options, by, cells)
        grades = grader.grade(submission, settings, [_note], _tell)
    facts = Facts(found.file.title, settings.term, dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), known, os.environ)
    if review is not None:
        typer.echo(harmless(str(write_review(grades, facts, review))), err=True)
    if kind.of_one and len(submission) > 1 and out is not None:
        _write_each(grades, kind, facts, out)
    else:
        _write(kind.write(grades, facts), out)
    if any(one.status is not Status.GRADED for one in grades):
        raise typer.Exit(NO_GRADE_EXIT)


def _note(event: Event) -> None:
    """What a run prepares may take minutes: a guest, a kernel. Cells are not told one by one: a class has hundreds."""
    if isinstance(event, Note):
        typer.echo(harmless(event.text), err=True)


def _tell(one: Grade) -> None:
    """A line for each submission as soon as it is graded: a class takes minutes."""
    typer.echo(harmless(f"{one.path}: {one.status}, {one.seconds:.0f} s"), err=True)
    for said in one.said:
        typer.echo(harmless(f"  {said}"), err=True)


def _write_each(grades: list[Grade], kind: formats.Format, facts: Facts, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for number, one in enumerate(grades, start=1):
        name = file_name(f"{number:03}", file_label(one.student or one.path.name), suffix=kind.suffix)
        replace_text(out / name, kind.write([one], facts))
    typer.echo(harmless(str(out)))


def _write(text: str, out: Path | None) -> None:
    if out is None:
        typer.echo(harmless(text), nl=False)
        return
    if not out.parent.is_dir() or out.is_dir():
        raise UsageError(f"--out {out}: found {'a folder' if out.is_dir() else 'no folder for it'}; expected the file to write. Name another.")
    replace_text(out, text)
    typer.echo(harmless(str(out)))
