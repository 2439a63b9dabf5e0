"""Whose variant a submission has: signed by the course, drawn for this student, for this term."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scpslab.core.choices import one_of
from scpslab.core.errors import ScpslabError, UsageError
from scpslab.core.names import shown
from scpslab_course.course import variant as variants
from scpslab_course.course.assignment import Assignment, Marking, load_marking
from scpslab_course.course.draw import DrawError, Whose, drawn
from scpslab_course.course.folder import Course
from scpslab_course.course.secret import Secret
from scpslab_course.course.variant import Variant, VariantError
from scpslab_course.grading.grade import Code, Finding
from scpslab_course.grading.submission import Submission


@dataclass(frozen=True)
class Bound:
    """A verified variant, and the instructor's files that it belongs to."""

    variant: Variant
    assignment: Assignment
    marking: Marking


class Binding:
    """The course's side. The secret is optional: a grading host in strangers' hands has none, and the signature is enough for it."""

    def __init__(self, course: Course, term: str, secret: Secret | None) -> None:
        self._course, self._term, self._secret = course, term, secret
        self._loaded: dict[str, tuple[Assignment, Marking]] = {}

    def bind(self, path: Path, content: bytes) -> Bound:
        """The variant of the submission at `path`, of which `content` is the file, with its assignment.

        Raises:
            UsageError: the submission cannot be graded with this course; the message says why.
            ScenarioError: the assignment's files are not valid.
        """
        try:
            variant = variants.verify(content, self._course.file.public_key)
        except VariantError as error:
            raise UsageError(f"{path}: {error}.") from error
        assignment, marking = self._files(path, variant)
        if said := variants.unfit(variant, assignment):
            raise UsageError(f"{path}: {said}. Grade with the files that were issued.")
        if variant.term == self._term and self._is_drawn_otherwise(variant, assignment):
            raise UsageError(f"{path}: found a signed variant that the secret does not give; expected the drawn one. Look for a copy of the secret.")
        return Bound(variant, assignment, marking)

    def findings(self, submission: Submission, variant: Variant, submitter: str | None) -> Iterator[Finding]:
        """Signs that a variant is not that of who handed it in. `submitter`: the student as the platform knows them; None if nobody said."""
        if variant.term != self._term:
            yield Finding(Code.OTHER_VARIANT, f"found a variant of the term {shown(variant.term)}; expected {shown(self._term)}")
        if submission.contents.student != variant.student:
            yield Finding(Code.OTHER_VARIANT, f"the submission says {shown(submission.contents.student)}; its variant was drawn for {shown(variant.student)}")
        if submitter is not None and submitter not in variant.members:
            yield Finding(Code.OTHER_VARIANT, f"handed in by {shown(submitter)}; the variant was issued to {', '.join(variant.members)}")

    def _files(self, path: Path, variant: Variant) -> tuple[Assignment, Marking]:
        name = variant.assignment
        known = self._course.file.assignments
        if name not in known:
            raise UsageError(f'{path}: found a variant of "{name}"; {one_of(name, known)} (course.yaml, assignments)')
        if name not in self._loaded:
            assignment = self._course.assignment(name)
            self._loaded[name] = assignment, load_marking(assignment)
        return self._loaded[name]

    def _is_drawn_otherwise(self, variant: Variant, assignment: Assignment) -> bool:
        if self._secret is None:
            return False
        whose = Whose(variant.term, variant.assignment, variant.student)
        try:
            return drawn(self._secret.draw_key, whose, assignment.file.variant, variant.attempt) != dict(variant.parameters)
        except (DrawError, ScpslabError):
            return True


def twice(bound: list[tuple[str, Variant]]) -> dict[str, str]:
    """Submissions, by name, whose variant another submission has, too; with the name of that one."""
    first: dict[str, str] = {}
    found: dict[str, str] = {}
    for name, variant in bound:
        other = first.setdefault(variant.digest, name)
        if other != name:
            found[name] = other
            found.setdefault(other, name)
    return found
