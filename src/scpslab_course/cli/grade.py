"""`scpslab grade`: grades submissions by running them again."""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from scpslab.cli.options import Jobs, check_out, choice
from scpslab.cli.terminal import printable, warn
from scpslab.core.errors import FAILED_EXIT, UsageError, harmless, some_of
from scpslab.core.names import shown
from scpslab.core.scratch import private_folder, replace_text, scratch
from scpslab.running import RunOptions
from scpslab.running.events import Event, Note
from scpslab_course.cli import CourseFolder, Instructors
from scpslab_course.course import folder as folders
from scpslab_course.course.assignment import opened
from scpslab_course.course.variant import SECRETS_FILE, Secret
from scpslab_course.course.workspace import write_new
from scpslab_course.grading import grader
from scpslab_course.grading.formats import FORMATS, Facts, line, several
from scpslab_course.grading.grade import Grade, Marks, Status, file_names
from scpslab_course.grading.review import review_folder, write_feedback, write_leaderboard, write_review

FROM = "The platform whose unpacked download of all submissions is given: students by their names in --roster."
OTHER_FOLDER = "Choose another name."
HELP = "; ".join(f"{name}: {kind.says}" for name, kind in FORMATS.items()) + "."


def _written(metavar: str) -> Any:
    """The option of a file or folder that the command writes."""
    return typer.Option(metavar=metavar, callback=printable)


def grade(
    submission: Annotated[list[Path], typer.Argument(metavar="SUBMISSION...")],
    course: CourseFolder = Path(),
    format_: Annotated[str, choice("--format", FORMATS, HELP)] = "table",
    out: Annotated[Path | None, _written("PATH")] = None,
    student: Annotated[str | None, typer.Option(metavar="ID")] = None,
    submitters: Annotated[Path | None, typer.Option(metavar="FILE")] = None,
    from_: Annotated[str | None, choice("--from", folders.PLATFORMS, FROM)] = None,
    roster: Annotated[Path | None, typer.Option(metavar="FILE")] = None,
    review: Annotated[Path | None, _written("FOLDER")] = None,
    feedback: Annotated[Path | None, _written("FOLDER")] = None,
    texts: Annotated[Path | None, _written("FOLDER")] = None,
    leaderboard: Annotated[Path | None, _written("FILE.html")] = None,
    marks: Annotated[Path | None, _written("FILE")] = None,
    sample: Annotated[int | None, typer.Option(min=0, metavar="NUMBER")] = None,
    instructors: Instructors = None,
    jobs: Jobs = None,
    no_cache: Annotated[bool, typer.Option("--no-cache")] = False,
) -> None:
    """Grade submissions by running them again.

    The variant's signature, the plans and the log's chain are checked; cells are run again and every byte of theirs is
    compared. What is right comes from the grader's own runs by the instructor's scenarios, never from the submission.
    Texts are left to a person, who writes points into the file of --marks; the same command then gives final grades.
    Nothing of a submission is unpacked or run; each is read and marked in a process with limits of memory and time.
    Exit code 0: every submission has a grade. Exit code 1:
    some are held for a person, or cannot be graded, or lines of --marks are wrong; the output says why.

    Examples: scpslab grade a.submission.tar.gz --course satnet · scpslab grade a.submission.tar.gz b.submission.tar.gz
    --course satnet --format moodle --out grades.csv --marks marks.csv

    Options:
        submission: Files that "scpslab assignment submit" wrote, or folders.
        student: The student's id on your platform. For one submission.
        submitters: The same for many: CSV with the columns file, student.
        roster: The roster, for names and addresses in formats that have them.
        sample: Cells to choose and run again. Default: marking.yaml's regrade.
        no_cache: Run every cell again, even if this machine has run it before.
        out: The file to write.
        review: Write a page for each submission and one for the class, for the person who marks.
        feedback: Write a page for each student with a grade: in Moodle's own folders with --from moodle.
        texts: Make a folder with the texts and programs of each submission, for JPlag, Dolos or MOSS.
        leaderboard: Write a page for the class: points of hidden trials, by pseudonym. It needs the secret.
        marks: Points that a person gives: the command adds a line for each open item, and reads them.
    """
    # Platforms pack all submissions into folders.
    submission = [one for path in submission for one in packed(path)]
    loaded = folders.load_course(course)
    known = {one.id: one for one in folders.read_roster(roster)} if roster is not None else {}
    by, times = _submitters(submission, student, submitters, (from_, list(known.values())))
    given = Marks(marks) if marks is not None else None
    kind = FORMATS[format_]
    if kind.of_one and len(submission) > 1:
        raise UsageError(
            f"--format {format_}: found {len(submission)} submissions; expected one. Grade each by itself."
        )
    _check_folders(review, texts)
    if out is not None:
        check_out(out)
    facts = Facts(loaded.file.title, loaded.file.term, known, loaded.issued(loaded.file.term))
    secret = _secret(loaded, leaderboard)
    with scratch() as folder, opened(instructors) as parts:
        options = RunOptions(jobs=jobs, use_cache=not no_cache, out=folder)
        settings = grader.Settings(
            folders.load_course(course, parts), facts.term, secret, options, by, sample, times, review
        )
        grades = grader.grade(submission, settings, [_note], _tell)
    if given is not None:
        grades = [given.applied(one) for one in grades]
    if out is None:
        typer.echo(harmless(kind.write(grades, facts)), nl=False)
    else:
        replace_text(out, kind.write(grades, facts), private=True)
        typer.echo(harmless(str(out)))
    _say_waiting(grades, given)
    # Last: a page that cannot be written costs no grade.
    rows = given.rows() if given is not None else ()
    pages = [write_review(grades, facts, review, rows)] if review is not None else []
    pages += [write_leaderboard(grades, facts, leaderboard)] if leaderboard is not None else []
    pages += [write_feedback(grades, facts, feedback)] if feedback is not None else []
    for page in pages:
        typer.echo(harmless(str(page)), err=True)
    if texts is not None:
        write_new(_texts(grades), texts, OTHER_FOLDER)
        typer.echo(harmless(str(texts)), err=True)
    if any(one.status is not Status.GRADED for one in grades) or (given is not None and given.problems):
        raise typer.Exit(FAILED_EXIT)


def packed(path: Path) -> list[Path]:
    """A file, or all packed ones of a folder: platforms put numbers into names (submission.tar-1.gz)."""
    inside = sorted(one for one in path.rglob("[!.]*") if one.is_file() and one.suffix != ".html")
    found = [one for one in inside if one.suffix == ".gz"]
    if others := [shown(one.name) for one in inside if one not in found]:
        expected = "expected what assignment submit has written. They are not graded."
        warn(f"{path}: found {len(others)} files that are not packed ({some_of(others)}); {expected}")
    return found or [path]


def _check_folders(review: Path | None, texts: Path | None) -> None:
    """Refuses folders that cannot be written, before anything is graded."""
    if review is not None:
        review_folder(review)
    if texts is not None:
        # What is left of an earlier grading would be compared, too.
        write_new({}, texts, OTHER_FOLDER)
        private_folder(texts)


def _secret(course: folders.Course, leaderboard: Path | None) -> Secret | None:
    """The course's secret if it is there; a leaderboard needs it, and a place."""
    if leaderboard is not None:
        check_out(leaderboard, "--leaderboard")
    place = course.folder / SECRETS_FILE
    if place.exists() or place.is_symlink():
        return course.secret()
    if leaderboard is not None:
        expected = "expected the course's secret, from which pseudonyms are made"
        raise UsageError(f"--leaderboard: {place}: found none; {expected}. Grade where it is.")
    return None


def _submitters(
    submissions: list[Path],
    student: str | None,
    file: Path | None,
    download: tuple[str | None, Sequence[folders.Student]] = (None, ()),
) -> tuple[dict[Path, str], dict[Path, dt.datetime]]:
    """The students by the files that they handed in, as the platform knows them: by `file`, and by the names in the
    download of a platform, with the students of the roster; and when they did.
    """
    if student is not None and (len(submissions) > 1 or file is not None):
        said = "found several submissions, or --submitters; expected one submission"
        raise UsageError(f"--student: {said}. Use --submitters FILE for many.")
    read = folders.read_submitters(file, submissions) if file is not None else {}
    known = {path: whose for path, (whose, _) in read.items()} | ({submissions[0]: student} if student else {})
    others, (platform, students) = [path for path in submissions if path not in known], download
    if platform is not None:
        named, unknown = folders.named_submitters(platform, others, students)
        known |= named
        for said in unknown:
            warn(f"--from {platform}: {said}")
    for one in others if file is not None and platform is None else ():
        warn(f"{file}: found no line of {one}; expected one, because only your platform knows whose it is. Add it.")
    return known, {path: at for path, (_, at) in read.items() if at is not None}


def _say_waiting(grades: list[Grade], given: Marks | None) -> None:
    """Says what a person still has to do, and writes the lines for it."""
    for (student, name), paths in several(grades).items():
        expected = "expected one file. Formats for a class have no score of it until you leave the others out"
        warn(f"{student}, {name}: found {' and '.join(map(str, paths))}; {expected}.")
    if given is None:
        if waiting := sum(one.status is Status.GRADED and not one.is_final for one in grades):
            typer.echo(f"wait for a person's points: {waiting}; give them with --marks marks.csv", err=True)
        return
    for number, said in given.problems.items():
        warn(f"{given.path}:{number}: {said}. It does not count: correct the line.")
    waiting = given.write(grades)
    advice = "; fill in points, and repeat the command" if waiting else ""
    typer.echo(harmless(f"{given.path}: {waiting or 'nothing'} to decide{advice}"), err=True)


def _texts(grades: list[Grade]) -> dict[str, bytes]:
    """The texts and programs of submissions, a folder for each of an assignment. A text of answers.yaml has no suffix
    of its own.
    """
    return {
        f"{one.assignment}/{name}/{file if Path(file).suffix else f'{file}.txt'}": text.encode("utf-8", "replace")
        for name, one in zip(file_names(grades), grades, strict=True)
        for file, text in one.texts.items()
    }


def _note(event: Event) -> None:
    """What a run prepares may take minutes: a guest, a kernel. Cells are not told one by one: a class has hundreds."""
    if isinstance(event, Note):
        typer.echo(harmless(event.text), err=True)


def _tell(one: Grade) -> None:
    """A line for each submission as soon as it is graded: a class takes minutes."""
    typer.echo(line(f"{one.path}: {one.status}, {one.seconds:.0f} s"), err=True)
    for said in one.said:
        typer.echo(f"  {line(said)}", err=True)
