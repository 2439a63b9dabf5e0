"""A course with one assignment, a student's variant, and submissions made by hand: nothing here runs a cell."""

import gzip
import hashlib
import io
import json
import shutil
import tarfile
from pathlib import Path

import pytest

from scpslab.running import RunOptions
from scpslab_course.course import variant
from scpslab_course.course.assignment import load_assignment, load_marking
from scpslab_course.course.folder import Party, Student, make_course, plan_issue
from scpslab_course.course.workspace import appended
from scpslab_course.grading import submission
from scpslab_course.grading.grader import Settings

SMALL = Path(__file__).parents[2] / "data" / "small_assignment"


@pytest.fixture
def course(tmp_path):
    """A course with the assignment `small`."""
    made = make_course(tmp_path / "satnet", "Satellite networks", "2026w", ["small"])
    shutil.copytree(SMALL, made.folder / "assignments" / "small")
    return made


@pytest.fixture
def assignment(course):
    """Its assignment."""
    return load_assignment(course.folder / "assignments" / "small")


@pytest.fixture
def issued(course, assignment):
    """Makes the signed variant of a student."""

    def of(student, term="2026w"):
        party = Party(student, (Student(student),))
        marked = [(assignment, load_marking(assignment))]
        return plan_issue(course, course.secret(), term, [party], marked, None)[0].variant

    return of


@pytest.fixture
def settings(course, tmp_path):
    """How the course grades."""
    return Settings(course, "2026w", course.secret(), RunOptions(out=tmp_path / "again"))


@pytest.fixture
def members(issued):
    """The members of anna's submission, without runs."""
    mine = issued("anna")
    log = appended(b"", mine.digest, "2026-11-22T21:00:00Z", "start", "small", "", [])
    return {
        submission.VARIANT: variant.write(mine),
        submission.LOG: log,
        "answers.yaml": b"bdp: 10 kB\n",
        submission.ARCHIVE: b"no archive",
        submission.WRITE_UP: b"# Mine\n",
    }


def entry(name, size=0, **fields):
    """The header of a member."""
    made = tarfile.TarInfo(name)
    made.size = size
    for key, value in fields.items():
        setattr(made, key, value)
    return made


def packed(path, members, *, contents=None, raw=()):
    """A submission of these members, listed with their digests, or with other `contents`; `raw`: headers of members of
    zeros, which are put beside them unlisted.
    """
    listed = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    head = {"format": 1, "assignment": "small", "student": "anna", "members": listed} | (contents or {})
    with gzip.open(path, "wb") as zipped, tarfile.open(fileobj=zipped, mode="w") as archive:
        for name, content in {submission.CONTENTS: json.dumps(head).encode(), **members}.items():
            archive.addfile(entry(name, len(content)), io.BytesIO(content))
        for member in raw:
            archive.addfile(member, io.BytesIO(b"\0" * member.size))
    return path


@pytest.fixture
def hand_in(tmp_path):
    """Writes a submission of these members."""

    def write(members, name="anna.submission.tar.gz", raw=()):
        return packed(tmp_path / name, members, raw=raw)

    return write
