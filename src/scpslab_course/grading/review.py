"""Pages for who marks, one for each submission, and one of them all; and the leaderboard, a page for the class: what
they show, as values, and their form.

Everything of a student is escaped text; the pages fetch nothing and have no scripts, and forbid both to the browser,
but for the one script, known by its digest, that saves the fields of the page by question as marks.csv. A
leaderboard has the points of the trials that nobody saw before, by pseudonym, and what the trials measured. Names,
ids, variants, and all that a student or a student's program wrote are not on it. Rows stand by points, then by
pseudonym: the order of files says nothing.
"""

import base64
import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from scpslab.analysis.output import pages as page_templates
from scpslab.core.errors import UsageError
from scpslab.core.names import file_label
from scpslab.core.scratch import private_folder, replace_text
from scpslab_course.course.folder import MOODLE
from scpslab_course.grading.formats import Facts, comment, not_handed_in, several, unseen
from scpslab_course.grading.grade import COLUMNS, Grade, Graded, Status, file_names

BINS = 10
INDEX, QUESTIONS = "index.html", "questions.html"
# Of two, each would know whose the other's points are.
FEWEST = 3


@dataclass(frozen=True)
class Question:
    """One part over the class: its mean share of the points, and how many were marked, were right and wait for a
    person.
    """

    assignment: str
    kind: str
    name: str
    points: float
    share: float | None
    marked: int
    right: int
    waiting: int


@dataclass(frozen=True)
class Overview:
    """The class.

    `bins`: submissions by tenths of the points that were marked. `inside`: intervals that held the number, of
    `intervals`.
    """

    counts: dict[str, int]
    bins: tuple[int, ...]
    questions: tuple[Question, ...]
    inside: int
    intervals: int
    seconds: float


def overview(grades: Sequence[Grade]) -> Overview:
    """The overview of these grades."""
    graded = [grade for grade in grades if grade.status is Status.GRADED]
    bins = [0] * BINS
    for grade in graded:
        if (given := grade.most - grade.waiting) > 0:
            bins[min(BINS - 1, int(BINS * grade.score / given))] += 1
    inside = [part.is_inside for grade in graded for part in grade.parts if part.is_inside is not None]
    counts = {str(status): sum(grade.status is status for grade in grades) for status in Status}
    seconds = sum(grade.seconds for grade in grades)
    return Overview(counts, tuple(bins), tuple(_questions(graded)), sum(inside), len(inside), seconds)


def _questions(grades: Sequence[Grade]) -> Iterator[Question]:
    found = defaultdict(list)
    for grade in grades:
        for part in grade.parts:
            found[grade.assignment, part.kind, part.name].append(part)
    for (assignment, kind, name), parts in found.items():
        shares = [part.earned / part.points for part in parts if part.earned is not None and part.points]
        share = mean(shares) if shares else None
        right = sum(one >= 1 for one in shares)
        waiting = sum(part.earned is None for part in parts)
        yield Question(assignment, kind, name, parts[0].points, share, len(shares), right, waiting)


def review_folder(folder: Path) -> Path:
    """The folder for the pages, which is made if it is missing.

    Raises:
        UsageError: it cannot be one.
    """
    try:
        return private_folder(folder)
    except OSError as error:
        raise UsageError(f"--review {folder}: found {error.strerror}; expected a folder. Name another.") from error


def write_review(grades: Sequence[Grade], facts: Facts, folder: Path, marks: Sequence[tuple[str, ...]] = ()) -> Path:
    """Writes the pages into a folder; returns that of the class. `marks`: the lines of marks.csv, for a page with
    fields, by question.

    Raises:
        UsageError: see `review_folder`.
    """
    review_folder(folder)
    for name, text in pages(grades, facts, marks).items():
        replace_text(folder / name, text, private=True)
    return folder / INDEX


def pages(grades: Sequence[Grade], facts: Facts, marks: Sequence[tuple[str, ...]] = ()) -> dict[str, str]:
    """The pages by their file names."""
    made = page_templates(Path(__file__).parent / "templates")
    of_class, of_one, marking = (made.get_template(f"{name}.html.j2") for name in ("class", "submission", "questions"))
    names = [f"{name}.html" for name in file_names(grades)]
    entries = list(zip(names, (_shown(grade, facts) for grade in grades), grades, strict=True))
    shown_first = {"overview": overview(grades), "missing": not_handed_in(grades, facts), "marks": bool(marks)}
    found = {INDEX: of_class.render(facts=facts, entries=entries, **shown_first)}
    if marks:
        found[QUESTIONS] = marking.render(facts=facts, index=INDEX, **_by_question(entries, marks))
    for name, shown, grade in entries:
        found[name] = of_one.render(facts=facts, grade=grade, shown=shown, index=INDEX)
    # A file's name may have bytes that are no text.
    return {name: text.encode("utf-8", "backslashreplace").decode() for name, text in found.items()}


def _by_question(entries: Sequence[tuple[str, str, Grade]], marks: Sequence[tuple[str, ...]]) -> dict[str, object]:
    """Every line of marks.csv with what it is about, and the script that writes it anew from fields."""
    of = {f"sha256-{grade.sha256}": (name, shown, grade) for name, shown, grade in entries}
    rows = []
    for number, row in enumerate(marks):
        name, shown, grade = of.get(row[0][: len("sha256-") + 64], ("", row[1], None))
        part = next((one for one in grade.parts if one.label == row[3]), None) if grade is not None else None
        rows.append((f"{row[2]}: {row[3]}", number, row, name, shown, part))
    script = (Path(__file__).parent / "templates" / "marks.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return {"rows": rows, "columns": COLUMNS, "script": script, "digest": digest}


def write_feedback(grades: Sequence[Grade], facts: Facts, folder: Path) -> Path:
    """Writes a page for each student who has a grade, with what a student may read; returns the folder.

    A file from Moodle's download has its page in a folder of the same name, which Moodle takes back in an archive.
    """
    review_folder(folder)
    template = page_templates(Path(__file__).parent / "templates").get_template("feedback.html.j2")
    doubtful = several(grades)
    for grade in (unseen(one) for one in grades if one.status is Status.GRADED):
        for student in (one for one in grade.recipients if (one, grade.assignment) not in doubtful):
            own = grade.path.parent.name if MOODLE in grade.path.parent.name else file_label(student)
            page = private_folder(folder / own) / f"{grade.assignment}.html"
            replace_text(page, template.render(facts=facts, grade=grade, comment=comment(grade)), private=True)
    return folder


def _shown(grade: Grade, facts: Facts) -> str:
    """Who handed in, with the names of the roster.

    A variant that was copied names its owner, who need not have done so.
    """
    known = [(one, facts.students[one].name if one in facts.students else "") for one in grade.recipients]
    return ", ".join(f"{name} ({one})" if name else one for one, name in known) or grade.student or grade.path.name


@dataclass(frozen=True)
class Place:
    """A row: its rank (equal points have the same one), the points of all trials, and the trials by name."""

    rank: int
    pseudonym: str
    points: float
    trials: dict[str, Graded]


@dataclass(frozen=True)
class Board:
    """An assignment: its trials, the most points for them, and the rows; none if they are fewer than FEWEST."""

    assignment: str
    trials: tuple[Graded, ...]
    most: float
    places: tuple[Place, ...]


def write_leaderboard(grades: Sequence[Grade], facts: Facts, path: Path) -> Path:
    """Writes the page; returns its path."""
    template = page_templates(Path(__file__).parent / "templates").get_template("leaderboard.html.j2")
    replace_text(path, template.render(facts=facts, boards=list(boards(grades)), fewest=FEWEST))
    return path


def boards(grades: Sequence[Grade]) -> Iterator[Board]:
    """The boards of the assignments that have hidden trials. A student or group has one row: the best one."""
    ranked = [one for one in grades if one.status is Status.GRADED and one.pseudonym]
    for assignment in dict.fromkeys(one.assignment for one in ranked):
        best: dict[str, tuple[float, str, dict[str, Graded]]] = {}
        for one in (one for one in ranked if one.assignment == assignment):
            trials = {part.name: part for part in one.parts if part.numbers is not None}
            points = round(sum(part.earned or 0 for part in trials.values()), 2)
            if one.whose not in best or best[one.whose][0] < points:
                best[one.whose] = points, one.pseudonym, trials
        rows = sorted(best.values(), key=lambda row: (-row[0], row[1]))
        # One that was completed, where there is one: it has the names of what was measured.
        tried = ([trials[name] for _, _, trials in rows if name in trials] for name in rows[0][2])
        every = tuple(max(parts, key=lambda part: len(part.numbers or ())) for parts in tried)
        order = [points for points, _, _ in rows]
        places = (Place(order.index(points) + 1, name, points, trials) for points, name, trials in rows)
        most = sum(part.points for part in every)
        yield Board(assignment, every, most, tuple(places) if len(rows) >= FEWEST else ())
