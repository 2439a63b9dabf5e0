"""`scpslab course`: an instructor's course: its secret, variants of students and for practice, autograders."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from scpslab.cli.options import Jobs
from scpslab.cli.progress import ConsoleProgress
from scpslab.cli.tables import table_console
from scpslab.cli.terminal import printable, warn
from scpslab.core.errors import ScenarioError, UsageError, harmless
from scpslab.core.scratch import replace_text, scratch
from scpslab.documents.quantities import AxisValue
from scpslab.running import RunOptions
from scpslab_course import autograder
from scpslab_course.cli import AnAssignment, CourseFolder, Instructors
from scpslab_course.course import folder as folders
from scpslab_course.course import handout
from scpslab_course.course.answers import agree, expected, read_practice, write_practice, wrong_in
from scpslab_course.course.assignment import PRACTICE, SOLUTION, Assignment, find, load_assignment, load_marking, opened
from scpslab_course.course.folder import load_course, read_roster
from scpslab_course.course.formulas import Rows
from scpslab_course.course.runs import Outcome, Planned, carry_out, planned, planned_hidden, rows_of, run_variant
from scpslab_course.course.variant import PRACTICE as PRACTICE_SECRET
from scpslab_course.course.variant import SECRETS_FILE, fingerprint
from scpslab_course.course.workspace import write_new

FIRST_TERM = "term-1"
# Ubuntu 22.04, which Gradescope takes unless told otherwise, and Debian 12 have packages of it.
PYTHON = ["3.11"]


def course() -> None:
    """Make a course, and issue a variant to every student.

    Examples: scpslab course new satnet --title "Satellite networks" --assignment first-steps · scpslab course issue
    --course satnet --roster roster.csv
    """


def new(
    name: Annotated[Path, typer.Argument(metavar="NAME", callback=printable)],
    title: str | None = None,
    assignment: list[str] | None = None,
) -> None:
    """Make a course: a folder with course.yaml and a new secret.

    The secret decides everybody's variants and signs them. Keep a copy of it where nobody else can read it: without it
    no variant can be issued again.

    Examples: scpslab course new satnet --title "Satellite networks" --assignment first-steps

    Options:
        name: The folder to make.
        title: The name that students see. Default: NAME.
        assignment: An assignment of the course; repeat the option. Also later, in course.yaml.
    """
    asked = list(dict.fromkeys(assignment or ()))
    for one in asked:
        find(one)
    made = folders.make_course(name, title or name.name, FIRST_TERM, asked)
    key = fingerprint(made.file.public_key)
    typer.echo(f"key {key}: announce it, so that students can check their variants (--key)", err=True)
    typer.echo(harmless(f"{name / SECRETS_FILE} is the course's secret: make a copy, and give it to nobody"), err=True)
    typer.echo(harmless(str(name)))


def issue(
    roster: Annotated[Path, typer.Option(metavar="FILE")],
    course: CourseFolder = Path(),
    assignment: list[str] | None = None,
    replace: Annotated[bool, typer.Option("--replace")] = False,
    instructors: Instructors = None,
    jobs: Jobs = None,
) -> None:
    """Draw and sign the variants of a roster: issued/TERM/STUDENT/ASSIGNMENT.variant.json.

    Students with the same group share a variant. The same roster, term and assignments give the same files again. A new
    student changes nobody's but those of the own group; --replace writes these, and work that was begun stays valid.
    Give every student the files of their own folder. issued.csv is for you: it lists all parameters, and names,
    addresses and files for a mail merge.

    Examples: scpslab course issue --course satnet --roster roster.csv

    Options:
        roster: CSV with the column student (an id), and if you like name, email, group.
        assignment: Only this assignment; repeat the option. Default: all of course.yaml.
        replace: Replace variants that are there with other content.
    """
    found = load_course(course)
    secret = found.secret()
    students = read_roster(roster)
    names = list(dict.fromkeys(assignment or found.file.assignments))
    if not names:
        said = "assignments: found none in course.yaml; expected at least one"
        raise ScenarioError(f"{course}: {said}. Add it, or name it with --assignment.")
    with opened(instructors) as place:
        loaded = [(one, load_marking(one, place)) for one in map(found.assignment, names)]
        issued = folders.plan_issue(
            found, secret, found.file.term, folders.parties(students), loaded, _Reference(jobs).rows
        )
    ledger = folders.write_issue(found, found.file.term, issued, replace=replace)
    for line in folders.alike(issued):
        warn(line)
    count, key = len({one.variant.digest for one in issued}), fingerprint(found.file.public_key)
    typer.echo(f"variants: {count}, students: {len(students)}; key {key}", err=True)
    typer.echo(harmless(str(ledger)))


def practice(
    name: AnAssignment,
    check: Annotated[bool, typer.Option("--check")] = False,
    instructors: Instructors = None,
    jobs: Jobs = None,
) -> None:
    """Draw the practice variant of an assignment, run it, and write it with its answers: practice.json.

    This also tries the assignment: its scenarios run, every formula of marking.yaml has a value, and the solution has
    all points for numbers, words and trials; otherwise nothing is written.

    Examples: scpslab course practice first-steps --check · scpslab course practice ./my-assignment

    Options:
        check: Write nothing; fail if practice.json is not what the assignment gives.
    """
    loaded = load_assignment(find(name))
    reference = _Reference(jobs)
    with opened(instructors) as place:
        marking = load_marking(loaded, place)
        variant = folders.practice_variant(loaded, marking, reference.rows)
        right = expected(loaded, marking, variant.parameters, reference.rows(loaded, variant.parameters))
        wrong = list(wrong_in(loaded, marking, right))
        hidden = planned_hidden(loaded, variant.parameters, marking, PRACTICE_SECRET.draw_key, variant.term)
        for one in (*planned(loaded, variant.parameters), *hidden):
            tried = reference.tried(marking.folder / SOLUTION / one.trial.file, one)
            typer.echo(harmless(f"trial {one.name}: {tried.says}"), err=True)
            if tried.share != 1:
                wrong.append(f"trial {one.name}: found {tried.says}; expected all points for the solution.")
    if wrong:
        raise ScenarioError("\n".join([*wrong, f"{name}: Correct the solution, or marking.yaml: the two must agree."]))
    path = loaded.folder / PRACTICE
    if check and not agree(read_practice(loaded), variant, right):
        said = "found another practice variant than the assignment gives; expected the same"
        raise ScenarioError(f'{path}: {said}. Run "scpslab course practice {name}".')
    if not check:
        replace_text(path, write_practice(variant, right))
    typer.echo(harmless(str(path)))


def draw(name: AnAssignment) -> None:
    """Draw the network of an assignment's first scenario: network.svg in its folder, for the handout.

    What a variant draws is called by its name, such as "your rate".

    Examples: scpslab course draw first-steps · scpslab course draw ./my-assignment
    """
    loaded = load_assignment(find(name))
    path = loaded.folder / handout.DRAWING
    replace_text(path, handout.picture(loaded))
    typer.echo(harmless(str(path)))


class _Reference:
    """Runs reference cells in virtual time; the result cache keeps them, the run folders go."""

    def __init__(self, jobs: int | None) -> None:
        self._jobs, self._listeners = jobs, [ConsoleProgress(table_console(stderr=True), jobs)]

    def rows(self, assignment: Assignment, parameters: Mapping[str, AxisValue], scenarios: Sequence[str] = ()) -> Rows:
        """What formulas read of the runs of these scenarios (default: all)."""
        typer.echo(f"{assignment.name}: runs cells of a draw", err=True)
        with scratch() as folder:
            options = RunOptions(jobs=self._jobs, out=folder)
            return rows_of(run_variant(assignment, parameters, options, self._listeners, scenarios))

    def tried(self, path: Path, one: Planned) -> Outcome:
        """What a file of the reference solution gives in a trial."""
        content = path.read_bytes() if path.is_file() else None
        with scratch() as folder:
            return carry_out(one, content, RunOptions(jobs=self._jobs, out=folder), self._listeners)


def publish(
    target: Annotated[Path, typer.Argument(metavar="FOLDER", callback=printable)], course: CourseFolder = Path()
) -> None:
    """Make the folder that students get: handouts, scenarios and practice variants of the course's assignments.

    It has nothing of the instructor's, and no variants: give these to each student.

    Examples: scpslab course publish for-students --course satnet

    Options:
        target: The folder to make.
    """
    files = folders.plan_publication(load_course(course))
    write_new(files, target, "Choose another name.")
    typer.echo(f"{len(files)} files", err=True)
    typer.echo(harmless(str(target)))


def gradescope(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    out: Annotated[Path, typer.Option(metavar="FILE.zip", callback=printable)],
    wheel: Annotated[Path, typer.Option(metavar="FILE")],
    roster: Annotated[Path, typer.Option(metavar="FILE")],
    course: CourseFolder = Path(),
    instructors: Instructors = None,
    python: Annotated[list[str] | None, typer.Option(metavar="VERSION")] = None,
) -> None:
    """Write an autograder for Gradescope: upload the file as the assignment's autograder.

    The archive holds everything, so grading needs no network; the container needs Python, whose Debian packages its
    setup.sh installs if they are missing. The course's secret is not in it. Python packages are downloaded when the
    archive is made.

    Examples: scpslab course gradescope first-steps --course satnet --roster roster.csv --wheel scpslab.whl --out
    first-steps.zip

    Options:
        name: An assignment of the course.
        out: The archive to write.
        wheel: The wheel from which you have installed, or that "make wheel" makes.
        roster: The roster with e-mail addresses, by which Gradescope knows students.
        python: A Python of the container; repeat the option. Default: 3.11.
    """
    loaded = load_course(course)
    if name not in loaded.file.assignments:
        known = ", ".join(loaded.file.assignments) or "those that you add"
        raise UsageError(f'{course}: found no assignment "{name}" in course.yaml; expected one of {known}.')
    pythons = python or PYTHON
    for one in pythons:
        if re.fullmatch(r"3\.(1[1-9]|[2-9]\d)", one) is None:
            raise UsageError(f'--python: found "{one[:20]}"; expected a version from 3.11 on, such as 3.11.')
    if out.suffix != ".zip" or not out.parent.is_dir() or out.is_dir():
        raise UsageError(f"--out {out}: found no place for an archive; expected FILE.zip in a folder that is there.")
    assignment = loaded.assignment(name)
    students = read_roster(roster)
    autograder.check_emails(students)
    with scratch() as folder, opened(instructors) as place:
        loaded = load_course(course, place)
        # Wheels take minutes: what grading cannot read of the assignment is told before.
        tuple(autograder.files_of(loaded, loaded.file.term, assignment))
        wheels = autograder.collect(wheel, pythons, folder)
        size = autograder.write_archive(out, loaded, loaded.file.term, assignment, students, wheels)
    typer.echo(f"{size / 1e6:.1f} MB, {len(students)} students, Python {', '.join(pythons)}", err=True)
    typer.echo(harmless(str(out)))


SUBCOMMANDS = (new, issue, publish, practice, draw, gradescope)
