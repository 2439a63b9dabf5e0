"""Writes an autograder's archive: the wheel of scpslab with its parts, the wheels of what it needs, the instructor's side of one assignment, two scripts.

The course's secret is not in it, nor is anything that only drawing variants needs (docs/security.md).
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from scpslab.analysis.csv_text import csv_text
from scpslab.core.errors import ScenarioError
from scpslab.core.names import shown
from scpslab.core.scratch import OWNER_S
from scpslab_course.autograder import layout
from scpslab_course.course.assignment import INSTRUCTOR, Assignment, Marking, load_marking
from scpslab_course.course.folder import FILE, OWN, Course
from scpslab_course.course.model import MARKING, SCENARIO_SUFFIX
from scpslab_course.course.roster import Student

# Times and owners of the machine are nobody's business: the same input gives the same archive.
DATE = (1980, 1, 1, 0, 0, 0)
PLAIN, PROGRAM = 0o100644, 0o100755
SCRIPTS = (layout.SETUP, layout.RUN)


@dataclass(frozen=True)
class Wheels:
    """The wheels of an archive: their files, the pinned requirements that they fulfil, and the versions of Python that they are for."""

    files: Sequence[Path]
    requirements: Sequence[str]
    pythons: Sequence[str]


def write_archive(out: Path, course: Course, term: str, assignment: Assignment, students: Sequence[Student], wheels: Wheels) -> int:
    """Writes the archive in one step; returns its size in bytes.

    Raises:
        ScenarioError: students without an e-mail address, or two with the same.
    """
    check_emails(students)
    aside = out.with_name(f".{out.name}.part")
    aside.unlink(missing_ok=True)
    # It has the markings, and the students' addresses.
    aside.touch(OWNER_S, exist_ok=False)
    try:
        with zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content, mode in _members(course, term, assignment, students, wheels):
                entry = zipfile.ZipInfo(name, DATE)
                entry.external_attr = mode << 16
                # Wheels are compressed already.
                entry.compress_type = zipfile.ZIP_STORED if name.endswith(".whl") else zipfile.ZIP_DEFLATED
                archive.writestr(entry, content)
        aside.replace(out)
    finally:
        aside.unlink(missing_ok=True)
    return out.stat().st_size


def _members(course: Course, term: str, assignment: Assignment, students: Sequence[Student], wheels: Wheels) -> Iterator[tuple[str, bytes, int]]:
    for name in SCRIPTS:
        yield name, (Path(__file__).parent / name).read_bytes(), PROGRAM
    yield layout.PYTHONS, (" ".join(wheels.pythons) + "\n").encode(), PLAIN
    yield layout.REQUIREMENTS, "".join(f"{line}\n" for line in wheels.requirements).encode(), PLAIN
    # Variants of other assignments are refused, because this course has none.
    facts = course.file.model_copy(update={"term": term, "assignments": (assignment.name,)}).model_dump(mode="json")
    yield f"{layout.COURSE}/{FILE}", yaml.safe_dump(facts, sort_keys=False, allow_unicode=True).encode(), PLAIN
    listed: list[list[object]] = [[one.id, one.email] for one in students]
    yield layout.STUDENTS, csv_text([["student", "email"], *listed]).encode(), PLAIN
    for path in _files_of(assignment, load_marking(assignment)):
        yield f"{layout.COURSE}/{OWN}/{assignment.name}/{path.relative_to(assignment.folder).as_posix()}", path.read_bytes(), PLAIN
    for wheel in wheels.files:
        yield f"{layout.WHEELS}/{wheel.name}", wheel.read_bytes(), PLAIN


def _files_of(assignment: Assignment, marking: Marking) -> list[Path]:
    """What grading reads of an assignment: the students' part, and of the instructor's marking.yaml and the scenarios of its trials."""
    found = (path for path in sorted(assignment.folder.rglob("*")) if path.is_file() and not path.is_symlink())
    private = assignment.folder / INSTRUCTOR
    needed = {private / MARKING, *(private / f"{trial.scenario}{SCENARIO_SUFFIX}" for trial in marking.file.trials.values())}
    return [path for path in found if private not in path.parents or path in needed]


def check_emails(students: Sequence[Student]) -> None:
    """Refuses a roster by which the platform's word of who handed in says nothing.

    Raises:
        ScenarioError: students without an e-mail address, or two with the same.
    """
    without = [student.id for student in students if not student.email]
    if without:
        more = f" and {len(without) - 3} more" if len(without) > 3 else ""
        raise ScenarioError(
            f"--roster: found no e-mail address of {', '.join(without[:3])}{more}; expected one of every student, because the platform "
            "says by e-mail who handed in. Add the column email."
        )
    seen: dict[str, str] = {}
    for student in students:
        other = seen.setdefault(student.email.casefold(), student.id)
        if other != student.id:
            raise ScenarioError(
                f"--roster: found the e-mail address {shown(student.email)} of {other} and {student.id}; expected one of each. Correct the roster."
            )
