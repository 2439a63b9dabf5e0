"""The folder of a course: course.yaml, the secret, the roster, and the variants that it issues.

CSV files of instructors are read strictly: students of a course, and who handed in which file. Errors name lines.

Variants are made as values first, then written. They depend on nothing but the secret, the names and the assignment.
"""

import csv
import dataclasses
import datetime as dt
import io
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator

from scpslab.analysis.output import csv_text, no_formula
from scpslab.core.choices import one_of
from scpslab.core.contents import content_of
from scpslab.core.errors import ScenarioError, UsageError
from scpslab.core.names import EXPECTED, LONGEST, is_name, shown
from scpslab.core.problems import KeyPath, Problem, UnfitError
from scpslab.core.scratch import private_folder, replace_text
from scpslab.documents.document import Places, load, validated
from scpslab.documents.parts import Part, Spelt, Version, key, one_line
from scpslab.documents.quantities import AxisValue, Name
from scpslab.documents.yaml_lines import Form, text_of, written
from scpslab_course.course import handout
from scpslab_course.course import variant as variants
from scpslab_course.course.answers import Evaluation, delimiter_of
from scpslab_course.course.assignment import FOLDER as ASSIGNMENTS
from scpslab_course.course.assignment import Assignment, Marking, find, load_assignment, load_marking
from scpslab_course.course.formulas import Rows as ResultRows
from scpslab_course.course.model import DifficultyBand, Whose
from scpslab_course.course.variant import NOBODY, PRACTICE, SECRETS_FILE, Secret, Variant, VariantError, fingerprint
from scpslab_course.course.workspace import handed_out

COLUMNS = ("student", "name", "email", "group")
PLATFORMS, MOODLE = ("moodle", "canvas"), "_assignsubmission_"
LARGEST_BYTES, LARGEST_LEDGER, MOST_STUDENTS, LONGEST_FIELD = 1 << 20, 64 << 20, 5000, 200
Rows = list[tuple[int, dict[str, str]]]
FILE, ISSUED, OWN, LEDGER = "course.yaml", "issued", "assignments", "issued.csv"
FORM = Form("a course", "kind, title, public_key, assignments", "docs/teaching.md")
TERM = Spelt(
    r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$", "a letter or digit, then letters, digits, - and _, 40 at most, such as 2026w"
)
KEY = Spelt(r"^[0-9a-f]{64}$", "64 hexadecimal digits, as `course new` has written them")
PAGE_FILE = "README.md"
PAGE = """# {title}

Term: {term}. Key of the course: `{key}`.

| assignment | title | minutes | points |
|---|---|---|---|
{rows}

To practise, with numbers that everybody has: `scpslab assignment start assignments/NAME`.

For marks, with your own file: `scpslab assignment start assignments/NAME --variant NAME.variant.json --key "{key}"`.
"""
# The results of a reference run: they cost time, so they are asked for only where a band needs them.
Reference = Callable[[Assignment, Mapping[str, AxisValue], Sequence[str]], ResultRows]


@dataclass(frozen=True)
class Student:
    """A line of a roster; `group` is "" for one who works alone."""

    id: str
    name: str = ""
    email: str = ""
    group: str = ""


@dataclass(frozen=True)
class Party:
    """Who works on one variant: `name` is what it is drawn under."""

    name: str
    members: tuple[Student, ...]


def read_csv(path: Path, expected: str, most: int = LARGEST_BYTES) -> tuple[tuple[str, ...], Rows]:
    """The columns of a CSV file, and its lines with their numbers. A head without commas has semicolons.

    Raises:
        ScenarioError: no ordinary file, more than `most` bytes, no text, no CSV, or lines of other length than the
            head.
    """
    text = text_of(path, expected, most, saved_as='"CSV UTF-8"')
    delimiter = delimiter_of(text)
    # Without newline="" a field could not have a line of its own; strict refuses quotes that never end.
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        rows = [(lines.line_num, row) for row in lines if any(field.strip() for field in row)]
    except csv.Error as error:
        said = f"{path}:{lines.line_num}: found {error}; expected a line of CSV. Correct the quotes."
        raise ScenarioError(said) from error
    if not rows:
        raise ScenarioError(f"{path}: found no line; expected {expected}. Add it.")
    (_, names), *rows = rows
    as_head = f"expected {len(names)}, as in the head. Put a field with {delimiter!r} in quotes."
    _refuse(path, ((number, f"found {len(row)} fields; {as_head}") for number, row in rows if len(row) != len(names)))
    head = tuple(name.strip().casefold() for name in names)
    return head, [(number, dict(zip(head, row, strict=True))) for number, row in rows]


def _refuse(path: Path, problems: Iterable[tuple[int, str]]) -> None:
    """One error for all problems of a file, each with its line."""
    if lines := [f"{path}:{number}: {said}" for number, said in problems]:
        raise ScenarioError("\n".join(lines))


def read_roster(path: Path) -> tuple[Student, ...]:
    """The students of a file with the columns student (an id), and if you like name, email and group.

    Raises:
        ScenarioError: all errors of the file, one line each.
    """
    head, rows = read_csv(path, f"a roster, a CSV file with a head such as {','.join(COLUMNS)}")
    _refuse(path, ((1, said) for said in _wrong_columns(head)))
    if not rows or len(rows) > MOST_STUDENTS:
        raise ScenarioError(f"{path}: found {len(rows)} students; expected 1 to {MOST_STUDENTS}. Add a line for each.")
    students = []
    for number, row in rows:
        fields = (unicodedata.normalize("NFC", row.get(name, "").strip()) for name in COLUMNS)
        students.append((number, Student(*fields)))
    _refuse(path, _wrong_students(students))
    return tuple(student for _, student in students)


def parties(students: Sequence[Student]) -> tuple[Party, ...]:
    """Groups and single students, in the order of the roster."""
    found: dict[str, list[Student]] = {}
    for student in students:
        found.setdefault(f"group/{student.group}" if student.group else student.id, []).append(student)
    return tuple(Party(name, tuple(members)) for name, members in found.items())


def named_submitters(
    platform: str, submissions: Sequence[Path], students: Sequence[Student]
) -> tuple[dict[Path, str], list[str]]:
    """Who handed in which file of Moodle's or Canvas' own download, by the students' names, which begin a folder or a
    file there; and what is to be said of the others.

    Platforms turn names round and leave out blanks, commas and letters with accents.
    """
    by_name: dict[str, list[str]] = {}
    for student in students:
        for name in {_letters(student.name), _letters(student.name.encode("ascii", "ignore").decode())}:
            by_name.setdefault(name, []).append(student.id)
    found, wrong = {}, []
    for path in submissions:
        is_flat = platform == "canvas" or MOODLE in path.name
        name = unicodedata.normalize("NFC", path.name if is_flat else path.parent.name).partition("_")[0]
        ids = by_name.get(_letters(name), [])
        if len(ids) == 1 and _letters(name):
            found[path] = ids[0]
        else:
            expected = "expected one. Write the line into a file for --submitters"
            wrong.append(f"{path}: found {len(ids)} students with the name {shown(name)} in the roster; {expected}.")
    return found, wrong


def _letters(name: str) -> str:
    return "".join(sorted(letter for letter in name.casefold() if letter.isalnum()))


def read_submitters(path: Path, submissions: Sequence[Path]) -> dict[Path, tuple[str, dt.datetime | None]]:
    """The students of a CSV file with the columns file and student, and the times of a column submitted_at, if there is
    one; a file stands there by its name, or by its path.

    Raises:
        ScenarioError: all errors of the file, one line each.
    """
    head, rows = read_csv(path, "CSV with the columns file, student")
    if not rows or not {"file", "student"} <= set(head):
        raise ScenarioError(f"{path}:1: found no columns file, student and no line below; expected them. Add them.")
    wrong = []
    by_name: dict[str, tuple[str, dt.datetime | None]] = {}
    for number, row in rows:
        name, student = (unicodedata.normalize("NFC", row[column].strip()) for column in ("file", "student"))
        if not name or not is_name(student):
            expected = "expected a file and a student's id. Correct the line."
            wrong.append((number, f"found {shown(name)}, {shown(student)}; {expected}"))
            continue
        try:
            at = moment_of(row["submitted_at"].strip()) if "submitted_at" in row else None
        except UnfitError as error:
            wrong.append((number, f"submitted_at: {error}. Correct the line."))
            continue
        if by_name.setdefault(name, (student, at))[0] != student:
            said = "a second time with another student; expected it once. Write the files' paths."
            wrong.append((number, f"found {shown(name)} {said}"))
    _refuse(path, wrong)
    # A Mac's names of files have accents apart from their letters.
    names = {one: [unicodedata.normalize("NFC", name) for name in (str(one), one.name)] for one in submissions}
    found = {one: by_name.get(path, by_name.get(name)) for one, (path, name) in names.items()}
    return {one: value for one, value in found.items() if value is not None}


def _wrong_columns(columns: Sequence[str]) -> Iterator[str]:
    for name in columns:
        if name not in COLUMNS:
            yield f"found the column {shown(name)}; {one_of(name, COLUMNS)}"
        elif columns.count(name) > 1:
            yield f'found the column "{name}" twice; expected it once. Remove one.'
    if "student" not in columns:
        yield 'found no column "student"; expected it, with an id for each student. Add it.'


def _wrong_students(students: Sequence[tuple[int, Student]]) -> Iterator[tuple[int, str]]:
    as_name = f"expected {EXPECTED}, at most {LONGEST}. It becomes a folder's name: choose another."
    as_text = f"expected one line of at most {LONGEST_FIELD} characters. Correct it."
    seen: dict[str, int] = {}
    for number, student in students:
        for what, value in (("student", student.id), ("group", student.group)):
            is_taken = what == "student" and value.casefold() == LEDGER
            if is_taken or (not is_name(value, LONGEST) and (value or what == "student")):
                yield number, f"{what}: found {shown(value)}; {as_name}"
        for what, value in (("name", student.name), ("email", student.email)):
            if len(value) > LONGEST_FIELD or not value.isprintable():
                yield number, f"{what}: found {shown(value)}; {as_text}"
        # Folders whose names differ in case alone are one folder on many computers.
        if (other := seen.setdefault(student.id.casefold(), number)) != number:
            expected = "expected each student once. Remove a line, or correct the id."
            yield number, f"student: found {shown(student.id)}, as in line {other}; {expected}"
    groups: dict[str, str] = {}
    for number, student in students:
        if (other_group := groups.setdefault(student.group.casefold(), student.group)) != student.group:
            expected = "expected one spelling. Correct one."
            yield number, f"group: found {shown(student.group)} beside {shown(other_group)}; {expected}"


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    if wrong := next((name for name in names if names.count(name) > 1 or not is_name(name)), None):
        raise UnfitError(shown(wrong), "names of assignments, each once, and no paths")
    return names


Names = Annotated[tuple[str, ...], AfterValidator(_each_once)]


def moment_of(text: object) -> dt.datetime:
    """A time with its zone.

    Raises:
        UnfitError: it is none.
    """
    with suppress(ValueError):
        if (moment := dt.datetime.fromisoformat(str(text))).tzinfo is not None:
            return moment
    raise UnfitError(shown(str(text)), "a time with its zone, such as 2026-12-01T12:00+01:00")


class CourseFile(Part):
    """The top level of course.yaml.

    Attributes:
        title: The name of the course, which students see.
        public_key: The public key that `course new` has made from the secret.
        term: The term for which variants are issued; another term gives everybody other ones.
        due: When each assignment is due; `grade` counts late days with the column submitted_at of --submitters.
        assignments: Names of assignments: of this folder's `assignments/`, or of the project.
    """

    kind: Literal["course"]
    version: Version
    title: Annotated[str, one_line(1, LONGEST_FIELD)] = key(example="Satellite networks")
    public_key: Annotated[str, KEY]
    term: Annotated[str, TERM] = key(example="2026w")
    due: dict[Name, Annotated[dt.datetime, BeforeValidator(moment_of)]] = key(
        {}, example={"first-steps": "2026-12-01T12:00+01:00"}
    )
    assignments: Names = key(example=["first-steps"])


@dataclass(frozen=True)
class Course:
    """A course and its folder, and the folder of instructors' parts of assignments that have none beside them."""

    folder: Path
    file: CourseFile
    instructors: Path | None = None

    def secret(self) -> Secret:
        """The secret, if it is the one of the course's key.

        Raises:
            UsageError: it is missing, readable by others, or another course's.
        """
        found = variants.read_secret(self.folder / SECRETS_FILE)
        if found.key != self.file.public_key:
            here, wanted = fingerprint(found.key), fingerprint(self.file.public_key)
            said = f"found the secret of key {here}; expected that of {wanted} in {FILE}. Restore the right one."
            raise UsageError(f"{self.folder / SECRETS_FILE}: {said}")
        return found

    def issued(self, term: str) -> list[tuple[str, str]]:
        """Every student and assignment of a term for which a variant was issued."""
        path = self.folder / ISSUED / term / LEDGER
        rows = read_csv(path, "the list of variants", LARGEST_LEDGER)[1] if path.is_file() else []
        return [(row.get("student", ""), row.get("assignment", "")) for _, row in rows]

    def assignment(self, name: str) -> Assignment:
        """An assignment of this course's own, or of the project."""
        return load_assignment(find(name, (self.folder / OWN, ASSIGNMENTS)))

    def marking(self, assignment: Assignment) -> Marking:
        """The instructor's part of one of its assignments."""
        return load_marking(assignment, self.instructors)


def load_course(folder: Path, instructors: Path | None = None) -> Course:
    """The course in a folder.

    Raises:
        ScenarioError: there is none, or all errors of course.yaml.
    """
    if not (folder / FILE).is_file():
        advice = 'Go there, name it with --course, or make one: "scpslab course new".'
        raise ScenarioError(f"{folder}: found no {FILE}; expected the folder of a course. {advice}")
    file, _ = load(folder / FILE, FORM, CourseFile)
    return Course(folder, file, instructors)


def make_course(folder: Path, title: str, term: str, assignments: Sequence[str]) -> Course:
    """A new course: the folder, its secret, and course.yaml.

    Raises:
        UsageError: there is something already.
        ScenarioError: the file would not be valid; nothing is written then.
    """
    if not is_name(folder.name):
        advice = "Choose another name, and give the title with --title."
        raise UsageError(f'{folder}: found the name "{folder.name}"; expected letters, digits, - and _. {advice}')
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: found something already; expected a new or empty folder. Choose another name.")
    data = {"kind": "course", "version": 1, "title": title, "public_key": PRACTICE.key, "term": term}
    data |= {"assignments": list(assignments)}
    # Before anything is written, with a key in the place of the one to be made.
    validated(data, Places(folder / FILE, {}, {("title",): "--title"}), CourseFile)
    private_folder(folder)
    made = variants.make_secret(folder / SECRETS_FILE)
    head = "# A course. Students need nothing of this folder but their own files under issued/.\n"
    text = written(data | {"public_key": made.key})
    replace_text(folder / FILE, head + text, private=True)
    # The secret is not for a repository that the instructor shares with others.
    (folder / ".gitignore").write_text(f"/{SECRETS_FILE}\n", encoding="utf-8")
    private_folder(folder / OWN)
    return load_course(folder)


def plan_publication(course: Course) -> dict[str, bytes]:
    """The files that every student of a course gets, by their paths: the students' parts of its assignments, and a page
    that says how to start.
    """
    loaded = [course.assignment(name) for name in course.file.assignments]
    files = {f"{OWN}/{one.name}/{name}": content for one in loaded for name, content in handed_out(one.folder)}
    for one in loaded:
        files |= {f"{OWN}/{one.name}/{name}": content for name, content in handout.page(one, {}).items()}
    rows = [f"| {one.name} | {one.file.title} | {one.file.minutes} | {one.file.points:g} |" for one in loaded]
    page = PAGE.format(
        title=course.file.title, term=course.file.term, key=fingerprint(course.file.public_key), rows="\n".join(rows)
    )
    return {PAGE_FILE: page.encode(), **files}


@dataclass(frozen=True)
class Issued:
    """One student's file: the variant, which may be a group's, and the path below the course's folder."""

    student: Student
    variant: Variant
    path: Path


def draw_within_bands(
    secret: Secret, whose: Whose, assignment: Assignment, marking: Marking, reference: Reference
) -> tuple[int, dict[str, AxisValue]]:
    """The first attempt inside all bands of difficulty, and its parameters.

    Raises:
        ScenarioError: none of the attempts is, and which band refused how many; or a formula has no value.
    """
    difficulty = marking.file.difficulty
    if difficulty is None:
        return 0, assignment.drawn(secret.draw_key, whose, 0)
    places: dict[KeyPath, DifficultyBand] = {
        ("difficulty", "bands", index, "value"): band for index, band in enumerate(difficulty.bands)
    }
    # Bands over parameters alone cost nothing: they come first.
    order = sorted(places, key=marking.needs_results)
    read = [name for name in assignment.file.scenarios if any(marking.formulas[at].reads(name) for at in places)]
    refused: Counter[str] = Counter()
    for attempt in range(difficulty.attempts):
        parameters = assignment.drawn(secret.draw_key, whose, attempt)
        rows: ResultRows = {}
        for at in order:
            if marking.needs_results(at) and not rows:
                rows = reference(assignment, parameters, read)
            if not places[at].includes(Evaluation(marking, parameters, rows).number(at)):
                refused[places[at].name] += 1
                break
        else:
            return attempt, parameters
    counts = ", ".join(f"{name} refused {count}" for name, count in refused.most_common())
    found = f"no variant for {whose.student} within {difficulty.attempts} attempts ({counts})"
    problem = Problem(("difficulty",), found, "one inside all bands", "Widen a band, or the ranges.")
    raise marking.places.error([problem])


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
    planned = []
    for assignment, marking in assignments:
        material = assignment.material
        for party in parties:
            whose = Whose(term, assignment.name, party.name)
            attempt, parameters = draw_within_bands(secret, whose, assignment, marking, reference)
            assignment.check_settings(parameters)
            # The order of a roster's lines is nobody's business: the same group has the same variant.
            members = tuple(sorted(student.id for student in party.members))
            unsigned = variants.unsigned(whose, course.file.title, material, members, attempt, parameters)
            made = variants.signed(unsigned, secret)
            try:
                variants.read(variants.write(made))
            except VariantError as error:
                said = f"{str(error).removesuffix(f'. {variants.ASK}')}. Correct the roster, or the assignment."
                raise ScenarioError(f"{assignment.name} of {party.name}: {said}") from error
            top, file = course.folder / ISSUED / term, f"{assignment.name}{variants.SUFFIX}"
            planned += [Issued(student, made, top / student.id / file) for student in party.members]
    return planned


def practice_variant(assignment: Assignment, marking: Marking, reference: Reference) -> Variant:
    """The variant that everybody has for practice."""
    whose = Whose(NOBODY, assignment.name, NOBODY)
    attempt, parameters = draw_within_bands(PRACTICE, whose, assignment, marking, reference)
    unsigned = variants.unsigned(whose, NOBODY, assignment.material, (NOBODY,), attempt, parameters)
    return variants.signed(unsigned, PRACTICE)


def alike(issued: Sequence[Issued]) -> list[str]:
    """Students of one assignment who have the same parameters, one line each."""
    found: dict[tuple[object, ...], dict[str, None]] = {}
    for one in issued:
        if one.variant.parameters:
            found.setdefault((one.variant.assignment, *one.variant.parameters.items()), {})[one.variant.student] = None
    return [f"{key[0]}: {', '.join(names)} have the same parameters" for key, names in found.items() if len(names) > 1]


def write_issue(course: Course, term: str, issued: Sequence[Issued], *, replace: bool = False) -> Path:
    """Writes the files, and the list of all that were issued; returns that list's path.

    A file that is there with other bytes is not touched, unless `replace`.

    Raises:
        UsageError: variants were issued already, and they were others.
    """
    changed = [one for one in issued if one.path.exists() and content_of(one.path) != variants.write(one.variant)]
    if changed and not replace:
        said = f"found another variant than the one of today's roster and assignment, as in {len(changed)} files"
        advice = (
            "Students may have begun with theirs: change `term:` in course.yaml, or replace the files with --replace."
        )
        if all(map(_is_drawn_alike, changed)):
            advice = "Only its members or the course's title differ: begun work stays valid. Add --replace."
        raise UsageError(f"{changed[0].path}: {said}; expected the same. {advice}")
    ledger = course.folder / ISSUED / term / LEDGER
    text = _ledger(issued, course.secret(), term, ledger)
    for one in issued:
        private_folder(one.path.parent)
        replace_text(one.path, variants.write(one.variant).decode(), private=True)
    replace_text(ledger, text, private=True)
    return ledger


def _is_drawn_alike(one: Issued) -> bool:
    """Whether a student's file differs from what is issued now in names alone."""
    try:
        there = variants.read(content_of(one.path))
    except VariantError:
        return False
    own = one.variant
    return dataclasses.replace(there, course=own.course, members=own.members, signature=own.signature) == own


def _ledger(issued: Sequence[Issued], secret: Secret, term: str, path: Path) -> str:
    """One line per student and assignment, as a mail merge takes them; lines at `path` of variants that are not issued
    again stay, as long as their files are there.

    It holds everybody's parameters: it is for the instructor.
    """
    head = "student name email assignment drawn_for attempt parameters file sha256 attachment pseudonym"
    rows: dict[Path, list[object]] = {}
    if path.exists():
        _, earlier = read_csv(path, "the list of variants that this command writes", LARGEST_LEDGER)
        lines = {path.parent / row.get("file", ""): [row.get(name, "") for name in head.split()] for _, row in earlier}
        rows = {file: [*line] for file, line in lines.items() if file.is_file()}
    for one in issued:
        student, variant = one.student, one.variant
        parameters = "; ".join(f"{name} = {value}" for name, value in variant.parameters.items())
        row = [student.id, no_formula(student.name), no_formula(student.email), variant.assignment, variant.student]
        row += [f"{variant.attempt}", parameters, f"{one.path.parent.name}/{one.path.name}", variant.digest]
        rows[one.path] = [*row, one.path.resolve(), secret.pseudonym(term, variant.student)]
    return csv_text([head.split(), *rows.values()])
