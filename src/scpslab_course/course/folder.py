"""The folder of a course: course.yaml, the secret, and what was issued."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field

from scpslab.core.errors import ScenarioError, UsageError
from scpslab.core.names import is_name
from scpslab.core.scratch import private_folder, replace_text
from scpslab.documents import Form, load
from scpslab.documents.parts import Part, key
from scpslab_course.course import secret
from scpslab_course.course.assignment import FOLDER as ASSIGNMENTS
from scpslab_course.course.assignment import Assignment, find, load_assignment
from scpslab_course.course.secret import Secret, fingerprint

FILE, ISSUED, OWN = "course.yaml", "issued", "assignments"
FORM = Form("a course", "kind, title, public_key, assignments", "docs/teaching.md")
Term = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$")]


class CourseFile(Part):
    """The top level of course.yaml."""

    kind: Literal["course"]
    version: Literal[1]
    title: Annotated[str, Field(min_length=1, max_length=200)] = key(says="The name of the course, which students see.", example="Satellite networks")
    public_key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] = key(says="The public key that `course new` has made from the secret.")
    term: Term = key(says="The term for which variants are issued; another term gives everybody other ones.", example="2026w")
    assignments: tuple[str, ...] = key(says="Names of assignments: of this folder's `assignments/`, or of the project.", example=["first-steps"])


@dataclass(frozen=True)
class Course:
    """A course and its folder."""

    folder: Path
    file: CourseFile

    def secret(self) -> Secret:
        """The secret, if it is the one of the course's key.

        Raises:
            UsageError: it is missing, readable by others, or another course's.
        """
        found = secret.read_secret(self.folder / secret.FILE)
        if found.key != self.file.public_key:
            here, wanted = fingerprint(found.key), fingerprint(self.file.public_key)
            raise UsageError(f"{self.folder / secret.FILE}: found the secret of key {here}; expected that of {wanted} in {FILE}. Restore the right one.")
        return found

    def assignment(self, name: str) -> Assignment:
        """An assignment of this course's own, or of the project."""
        return load_assignment(find(name, (self.folder / OWN, ASSIGNMENTS)))


def load_course(folder: Path) -> Course:
    """The course in a folder.

    Raises:
        ScenarioError: there is none, or all errors of course.yaml.
    """
    if not (folder / FILE).is_file():
        raise ScenarioError(f'{folder}: found no {FILE}; expected the folder of a course. Go there, name it with --course, or make one: "scpslab course new".')
    file, _ = load(folder / FILE, FORM, CourseFile)
    return Course(folder, file)


def make_course(folder: Path, title: str, term: str, assignments: Sequence[str]) -> Course:
    """A new course: the folder, its secret, and course.yaml.

    Raises:
        UsageError: there is something already.
    """
    if not is_name(folder.name):
        raise UsageError(f'{folder}: found the name "{folder.name}"; expected letters, digits, - and _. Choose another name, and give the title with --title.')
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: found something already; expected a new or empty folder. Choose another name.")
    private_folder(folder)
    made = secret.make_secret(folder / secret.FILE)
    head = "# A course. Students need nothing of this folder but their own files under issued/.\n"
    data = {"kind": "course", "version": 1, "title": title, "public_key": made.key, "term": term, "assignments": list(assignments)}
    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    replace_text(folder / FILE, head + text, private=True)
    # The secret is not for a repository that the instructor shares with others.
    (folder / ".gitignore").write_text(f"/{secret.FILE}\n", encoding="utf-8")
    private_folder(folder / OWN)
    return load_course(folder)
