"""What a format is, and texts that no reader of it can take for something else."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from scpslab.course.roster import Student
from scpslab.grading.grade import Grade

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
        lines.append(f"{grade.score:g} of {grade.most:g} points without a person; a person decides about {grade.waiting:g}.{state}")
    return "\n".join(lines)


def hundredths(points: float) -> int:
    """Points as a whole number, for forms that have no others."""
    return round(100 * points)


def without_markup(text: str) -> str:
    """The text without the characters that begin markup: not every platform says whether it escapes."""
    return text.translate({ord("<"): "‹", ord(">"): "›", ord("&"): "+", ord("`"): "'"})


def cell(text: str) -> str:
    """The text as a cell that no spreadsheet takes for a formula."""
    plain = line(text)
    return f"'{plain}" if plain.startswith(("=", "+", "-", "@")) else plain
