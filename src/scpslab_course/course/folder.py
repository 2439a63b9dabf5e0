"""The folder of a course: course.yaml, the secret, and the variants that it issues.

Variants are made as values first, then written. They depend on nothing but the secret, the names and the assignment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import AfterValidator

from scpslab.analysis.output import csv_text, no_formula
from scpslab.core.errors import ScenarioError, UsageError
from scpslab.core.names import is_name, shown
from scpslab.core.scratch import private_folder, replace_text
from scpslab.documents import Form, Places, load, validated
from scpslab.documents.parts import Part, Spelt, Version, key, one_line
from scpslab.documents.quantities import AxisValue
from scpslab.documents.yaml_lines import content_of
from scpslab_course.course import secret
from scpslab_course.course import variant as variants
from scpslab_course.course.assignment import FOLDER as ASSIGNMENTS
from scpslab_course.course.assignment import Assignment, Marking, find, load_assignment
from scpslab_course.course.draw import Whose
from scpslab_course.course.formulas import Rows
from scpslab_course.course.model import Band
from scpslab_course.course.roster import Party, Student
from scpslab_course.course.scoring import Evaluation
from scpslab_course.course.secret import PRACTICE, Secret, fingerprint
from scpslab_course.course.variant import Variant, VariantError, signed

FILE, ISSUED, OWN = "course.yaml", "issued", "assignments"
FORM = Form("a course", "kind, title, public_key, assignments", "docs/teaching.md")
TERM = Spelt(
    r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$", "a letter or digit, then letters, digits, - and _, 40 at most, such as 2026w"
)
KEY = Spelt(r"^[0-9a-f]{64}$", "64 hexadecimal digits, as `course new` has written them")
LEDGER = "issued.csv"
LONGEST_TITLE = 200
NOBODY = "practice"
# The results of a reference run: they cost time, so they are asked for only where a band needs them.
Reference = Callable[[Assignment, Mapping[str, AxisValue]], Rows]


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"found {shown(twice)} twice; expected each assignment once")
    return names


Names = Annotated[tuple[str, ...], AfterValidator(_each_once)]


class CourseFile(Part):
    """The top level of course.yaml."""

    kind: Literal["course"]
    version: Version
    title: Annotated[str, one_line(1, LONGEST_TITLE)] = key(
        says="The name of the course, which students see.", example="Satellite networks"
    )
    public_key: Annotated[str, KEY] = key(says="The public key that `course new` has made from the secret.")
    term: Annotated[str, TERM] = key(
        says="The term for which variants are issued; another term gives everybody other ones.", example="2026w"
    )
    assignments: Names = key(
        says="Names of assignments: of this folder's `assignments/`, or of the project.", example=["first-steps"]
    )


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
            raise UsageError(
                f"{self.folder / secret.FILE}: found the secret of key {here}; expected that of {wanted} in {FILE}. "
                "Restore the right one."
            )
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
        raise ScenarioError(
            f"{folder}: found no {FILE}; expected the folder of a course. Go there, name it with --course, or make "
            'one: "scpslab course new".'
        )
    file, _ = load(folder / FILE, FORM, CourseFile)
    return Course(folder, file)


def make_course(folder: Path, title: str, term: str, assignments: Sequence[str]) -> Course:
    """A new course: the folder, its secret, and course.yaml.

    Raises:
        UsageError: there is something already.
        ScenarioError: the file would not be valid; nothing is written then.
    """
    if not is_name(folder.name):
        raise UsageError(
            f'{folder}: found the name "{folder.name}"; expected letters, digits, - and _. '
            "Choose another name, and give the title with --title."
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: found something already; expected a new or empty folder. Choose another name.")
    data = {
        "kind": "course",
        "version": 1,
        "title": title,
        "public_key": PRACTICE.key,
        "term": term,
        "assignments": list(assignments),
    }
    # Before anything is written, with a key in the place of the one to be made.
    validated(data, Places(folder / FILE, {}, {("title",): "--title", ("term",): "--term"}), CourseFile)
    private_folder(folder)
    made = secret.make_secret(folder / secret.FILE)
    head = "# A course. Students need nothing of this folder but their own files under issued/.\n"
    text = yaml.safe_dump(data | {"public_key": made.key}, sort_keys=False, allow_unicode=True)
    replace_text(folder / FILE, head + text, private=True)
    # The secret is not for a repository that the instructor shares with others.
    (folder / ".gitignore").write_text(f"/{secret.FILE}\n", encoding="utf-8")
    private_folder(folder / OWN)
    return load_course(folder)


@dataclass(frozen=True)
class Issued:
    """One student's file: the variant, which may be a group's, and the path below the course's folder."""

    student: Student
    variant: Variant
    path: Path


def draw_within_bands(
    secret: Secret, whose: Whose, assignment: Assignment, marking: Marking | None, reference: Reference
) -> tuple[int, dict[str, AxisValue]]:
    """The first attempt inside all bands of difficulty, and its parameters.

    Raises:
        ScenarioError: none of the attempts is, and which band refused how many; or a formula has no value.
    """
    difficulty = marking.file.difficulty if marking else None
    if marking is None or difficulty is None:
        return 0, assignment.drawn(secret.draw_key, whose, 0)
    # Bands over parameters alone cost nothing: they come first.
    order = sorted(
        range(len(difficulty.bands)), key=lambda index: marking.needs_results(("difficulty", "bands", index, "value"))
    )
    refused: Counter[str] = Counter()
    for attempt in range(difficulty.attempts):
        parameters = assignment.drawn(secret.draw_key, whose, attempt)
        rows: Rows = {}
        for index in order:
            at = ("difficulty", "bands", index, "value")
            if marking.needs_results(at) and not rows:
                rows = reference(assignment, parameters)
            number = Evaluation(marking, parameters, rows).number(at)
            if not _is_inside(difficulty.bands[index], number):
                refused[difficulty.bands[index].name] += 1
                break
        else:
            return attempt, parameters
    counts = ", ".join(f"{name} refused {count}" for name, count in refused.most_common())
    said = (
        f"found no variant for {whose.student} within {difficulty.attempts} attempts ({counts}); "
        "expected one inside all bands. Widen a band, or the ranges."
    )
    raise marking.places.error([(("difficulty",), said)])


def plan_issue(
    course: Course,
    secret: Secret,
    term: str,
    parties: Sequence[Party],
    assignments: Sequence[tuple[Assignment, Marking]],
    reference: Reference,
) -> list[Issued]:
    """Every student's file of a term; nothing is written.

    Each member of a group has the group's variant in a folder of their own.

    Raises:
        ScenarioError: see `draw_within_bands`; or a scenario does not take what was drawn, or no variant can be so:
            nobody could start with it.
    """
    found = []
    for assignment, marking in assignments:
        material = assignment.material()
        for party in parties:
            whose = Whose(term, assignment.name, party.name)
            attempt, parameters = draw_within_bands(secret, whose, assignment, marking, reference)
            assignment.check_settings(parameters)
            members = tuple(student.id for student in party.members)
            made = signed(_unsigned(course.file.title, whose, material, members, attempt, parameters), secret)
            try:
                variants.read(variants.write(made))
            except VariantError as error:
                said = str(error).removesuffix(f". {variants.ASK}")
                raise ScenarioError(
                    f"{assignment.name} of {party.name}: {said}. Correct the roster, or the assignment."
                ) from error
            file = f"{assignment.name}{variants.SUFFIX}"
            found += [
                Issued(student, made, course.folder / ISSUED / term / student.id / file) for student in party.members
            ]
    return found


def practice_variant(assignment: Assignment, marking: Marking | None, reference: Reference) -> Variant:
    """The variant that everybody has for practice."""
    whose = Whose(NOBODY, assignment.name, NOBODY)
    attempt, parameters = draw_within_bands(PRACTICE, whose, assignment, marking, reference)
    return signed(_unsigned(NOBODY, whose, assignment.material(), (NOBODY,), attempt, parameters), PRACTICE)


def alike(issued: Sequence[Issued]) -> list[str]:
    """Students of one assignment who have the same parameters, one line each."""
    found: dict[tuple[object, ...], dict[str, None]] = {}
    for one in issued:
        if one.variant.parameters:
            found.setdefault((one.variant.assignment, *one.variant.parameters.items()), {})[one.variant.student] = None
    return [f"{key[0]}: {', '.join(names)} have the same parameters" for key, names in found.items() if len(names) > 1]


def write_issue(course: Course, term: str, issued: Sequence[Issued], *, replace: bool = False) -> Path:
    """Writes the files, and the list of all of them; returns that list's path.

    A file that is there with other bytes is not touched, unless `replace`.

    Raises:
        UsageError: variants were issued already, and they were others.
    """
    changed = [one.path for one in issued if one.path.exists() and content_of(one.path) != variants.write(one.variant)]
    if changed and not replace:
        raise UsageError(
            f"{changed[0]}: found another variant than the one of today's roster and assignment, as in "
            f"{len(changed)} files; expected the same. Students may "
            "have begun with theirs: issue another --term, or replace the files with --replace."
        )
    for one in issued:
        private_folder(one.path.parent)
        replace_text(one.path, variants.write(one.variant).decode(), private=True)
    ledger = course.folder / ISSUED / term / LEDGER
    replace_text(ledger, _ledger(issued), private=True)
    return ledger


def _unsigned(
    course: str, whose: Whose, material: str, members: tuple[str, ...], attempt: int, parameters: dict[str, AxisValue]
) -> Variant:
    return Variant(
        format_=variants.FORMAT,
        course=course,
        term=whose.term,
        assignment=whose.assignment,
        material=material,
        student=whose.student,
        members=members,
        attempt=attempt,
        parameters=parameters,
        key="",
        signature="",
    )


def _is_inside(band: Band, number: float) -> bool:
    return (band.at_least is None or number >= band.at_least) and (band.at_most is None or number <= band.at_most)


def _ledger(issued: Sequence[Issued]) -> str:
    """One line per student and assignment, as a mail merge takes them.

    It holds everybody's parameters: it is for the instructor.
    """
    rows: list[list[object]] = [
        ["student", "name", "email", "assignment", "drawn_for", "attempt", "parameters", "file", "sha256", "attachment"]
    ]
    for one in issued:
        student, variant = one.student, one.variant
        shown = "; ".join(f"{name} = {value}" for name, value in variant.parameters.items())
        texts = [
            student.id,
            no_formula(student.name),
            no_formula(student.email),
            variant.assignment,
            variant.student,
            variant.attempt,
            shown,
        ]
        rows.append([*texts, f"{one.path.parent.name}/{one.path.name}", variant.digest, one.path.resolve()])
    return csv_text(rows)


def check_terms(term: str) -> None:
    """Refuses a term that is no folder's name.

    Raises:
        ScenarioError: it is none.
    """
    if not term or not term.replace("-", "").replace("_", "").isalnum() or not term.isascii() or len(term) > 40:
        raise ScenarioError(
            f'--term: found "{term[:60]}"; expected letters, digits, - and _, such as 2026w. Correct the option.'
        )
