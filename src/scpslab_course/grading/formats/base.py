"""What a format is, and texts that no reader of it can take for something else."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from scpslab.analysis.csv_text import no_formula
from scpslab_course.course.roster import Student
from scpslab_course.grading.grade import Grade

LONGEST = 2000


@dataclass(frozen=True)
class Facts:
    """What a format needs besides grades: the course's title, the students of the roster by id, the time, and the variables that the platform has set."""

    course: str
    term: str
    at: str
    students: Mapping[str, Student] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Format:
    """A form of grades. `of_one` is for a platform that grades one submission at a time, the default; otherwise `write` takes a class."""

    says: str
    suffix: str
    write: Callable[[Sequence[Grade], Facts], str]
    of_one: bool = True


def line(text: str, most: int = LONGEST) -> str:
    """A student's text on one line, without characters that a terminal, browser or spreadsheet obeys."""
    plain = "".join(" " if unicodedata.category(letter)[0] in "CZ" else letter for letter in text[: most + 1])
    words = " ".join(plain.split())
    return words if len(words) <= most else f"{words[: most - 1]}…"


def comment(grade: Grade) -> str:
    """The lines that go with a whole grade: why there is none, what was found, and what a person still decides."""
    lines = [line(said) for said in grade.said]
    if grade.parts:
        state = {"graded": "", "held": " This score is held: a person decides.", "ungraded": ""}[grade.status]
        waits = f"; a person still decides about {grade.waiting:g} of them" if grade.waiting else ""
        lines.append(f"{grade.score:g} of {grade.most:g} points{waits}.{state}")
    return "\n".join(lines)


def feedback(grade: Grade) -> str:
    """The points and comments of all parts on one line, for grade books and letters."""
    return line("; ".join(f"{part.label}: {part.earned or 0:.4g} of {part.points:g}, {line(part.comment, 300)}" for part in grade.parts if part.points))


def names_of(name: str) -> tuple[str, str]:
    """First and last name of `Last, First` or `First Last`."""
    last, comma, first = name.partition(",")
    if not comma:
        first, _, last = name.rpartition(" ")
    return first.strip(), last.strip()


def finals(grades: Sequence[Grade], facts: Facts) -> Iterator[tuple[Student, Grade]]:
    """Students with their final grades, which are all that a grade book gets: every member of a group has a line."""
    for grade in grades:
        if grade.is_final:
            yield from ((facts.students.get(member, Student(member)), grade) for member in grade.recipients)


def book(grades: Sequence[Grade], facts: Facts) -> tuple[list[str], dict[Student, dict[str, Grade]]]:
    """The assignments of these grades, and the students' final grades of them, for books with a line for each student."""
    students: dict[Student, dict[str, Grade]] = {}
    for student, grade in finals(grades, facts):
        students.setdefault(student, {})[grade.assignment] = grade
    return list(dict.fromkeys(name for found in students.values() for name in found)), students


def hundredths(points: float) -> int:
    """Points as a whole number, for forms that have no others."""
    return round(100 * points)


def without_markup(text: str) -> str:
    """The text without the characters that begin markup: not every platform says whether it escapes."""
    return text.translate({ord("<"): "‹", ord(">"): "›", ord("&"): "+", ord("`"): "'"})


def cell(text: str) -> str:
    """The text on one line, as a cell that no spreadsheet takes for a formula."""
    return no_formula(line(text))
