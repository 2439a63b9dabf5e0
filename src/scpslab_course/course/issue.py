"""Issues variants: first all of them as values, then the files. What is issued depends on nothing but the secret, the names and the assignment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scpslab.analysis.csv_text import csv_text, no_formula
from scpslab.core.errors import ScenarioError, UsageError
from scpslab.core.scratch import private_folder, replace_text
from scpslab.documents.quantities import AxisValue
from scpslab_course.course import variant as variants
from scpslab_course.course.assignment import Assignment, Marking
from scpslab_course.course.draw import Whose, drawn
from scpslab_course.course.expected import Evaluation
from scpslab_course.course.folder import ISSUED, Course
from scpslab_course.course.marking import Band
from scpslab_course.course.numbers import Rows
from scpslab_course.course.roster import Party, Student
from scpslab_course.course.secret import PRACTICE, Secret
from scpslab_course.course.variant import Variant, signed

LEDGER = "issued.csv"
NOBODY = "practice"
# The results of a reference run: they cost time, so they are asked for only where a band needs them.
Reference = Callable[[Assignment, Mapping[str, AxisValue]], Rows]


@dataclass(frozen=True)
class Issued:
    """One student's file: the variant, which may be a group's, and the path below the course's folder."""

    student: Student
    variant: Variant
    path: Path


def draw_within_bands(secret: Secret, whose: Whose, assignment: Assignment, marking: Marking | None, reference: Reference) -> tuple[int, dict[str, AxisValue]]:
    """The first attempt inside all bands of difficulty, and its parameters.

    Raises:
        ScenarioError: none of the attempts is, and which band refused how many.
    """
    difficulty = marking.file.difficulty if marking else None
    if marking is None or difficulty is None:
        return 0, drawn(secret.draw_key, whose, assignment.file.variant, 0)
    # Bands over parameters alone cost nothing: they come first.
    order = sorted(range(len(difficulty.bands)), key=lambda index: marking.needs_results(("difficulty", "bands", index, "value")))
    refused: Counter[str] = Counter()
    for attempt in range(difficulty.attempts):
        parameters = drawn(secret.draw_key, whose, assignment.file.variant, attempt)
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
    said = f"found no variant for {whose.student} within {difficulty.attempts} attempts ({counts}); expected one inside all bands. Widen a band, or the ranges."
    raise marking.places.error([(("difficulty",), said)])


def plan_issue(
    course: Course, secret: Secret, term: str, parties: Sequence[Party], assignments: Sequence[tuple[Assignment, Marking]], reference: Reference
) -> list[Issued]:
    """Every student's file of a term; nothing is written. Each member of a group has the group's variant in a folder of their own.

    Raises:
        ScenarioError: see `draw_within_bands`.
    """
    found = []
    for assignment, marking in assignments:
        material = assignment.material()
        for party in parties:
            whose = Whose(term, assignment.name, party.name)
            attempt, parameters = draw_within_bands(secret, whose, assignment, marking, reference)
            members = tuple(student.id for student in party.members)
            made = signed(_unsigned(course.file.title, whose, material, members, attempt, parameters), secret)
            file = f"{assignment.name}{variants.SUFFIX}"
            found += [Issued(student, made, course.folder / ISSUED / term / student.id / file) for student in party.members]
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
    """Writes the files, and the list of all of them; returns that list's path. A file that is there with other bytes is not touched, unless `replace`.

    Raises:
        UsageError: variants were issued already, and they were others.
    """
    changed = [one.path for one in issued if one.path.exists() and one.path.read_bytes() != variants.write(one.variant)]
    if changed and not replace:
        raise UsageError(
            f"{changed[0]}: found another variant than the one of today's roster and assignment, as in {len(changed)} files; expected the same. Students may "
            "have begun with theirs: issue another --term, or replace the files with --replace."
        )
    for one in issued:
        private_folder(one.path.parent)
        replace_text(one.path, variants.write(one.variant).decode(), private=True)
    ledger = course.folder / ISSUED / term / LEDGER
    replace_text(ledger, _ledger(issued), private=True)
    return ledger


def _unsigned(course: str, whose: Whose, material: str, members: tuple[str, ...], attempt: int, parameters: dict[str, AxisValue]) -> Variant:
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
    """One line per student and assignment, as a mail merge takes them. It holds everybody's parameters: it is for the instructor."""
    rows: list[list[object]] = [["student", "name", "email", "assignment", "drawn_for", "attempt", "parameters", "file", "sha256", "attachment"]]
    for one in issued:
        student, variant = one.student, one.variant
        shown = "; ".join(f"{name} = {value}" for name, value in variant.parameters.items())
        texts = [student.id, no_formula(student.name), no_formula(student.email), variant.assignment, variant.student, variant.attempt, shown]
        rows.append([*texts, f"{one.path.parent.name}/{one.path.name}", variant.digest, one.path.resolve()])
    return csv_text(rows)


def check_terms(term: str) -> None:
    """Refuses a term that is no folder's name.

    Raises:
        ScenarioError: it is none.
    """
    if not term or not term.replace("-", "").replace("_", "").isalnum() or not term.isascii() or len(term) > 40:
        raise ScenarioError(f'--term: found "{term[:60]}"; expected letters, digits, - and _, such as 2026w. Correct the option.')
