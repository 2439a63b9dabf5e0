"""What only a look at the whole class shows: equal texts and programs, equal logs, and numbers that are right for
another student's variant.

Numbers may agree by chance. They count only with the digits that make chance unlikely, and only if nothing of the
student's own variant explains them.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path

from scpslab.analysis.statistics import ResultRow
from scpslab.core.names import shown
from scpslab.documents.quantities import AxisValue
from scpslab_course.course import answers
from scpslab_course.course.answers import Expected
from scpslab_course.course.assignment import SOLUTION, Assignment, Marking
from scpslab_course.course.formulas import Rows, base_value
from scpslab_course.course.workspace import BLANK_WRITE_UP, handed_out
from scpslab_course.grading.grade import Code, Concern, Grade

# A number in a text, without one that is a part of a name, a version or a date.
NUMBER = re.compile(r"(?<![\w.,:/-])\d{1,12}(?:\.\d{1,12})?(?![\w:/-]|\.\d|,\d)", re.ASCII)
# A comma between thousands; and a unit that begins directly behind a number.
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))", re.ASCII)
UNIT = re.compile(r"(?<=\d)(?=(?:[kMG]?bit/s|[kMG]?B|[mu]?s|km)\b)", re.ASCII)
# What is longer answers no question for a number.
LONGEST_NUMBER = 200
FEWEST_DIGITS = 3
# Two numbers of four digits, or three of three. In simulated classes of 60, with 40 numbers in each variant, chance
# names one of 200 students who write three numbers of four digits that nothing explains, and one of 1000 who write
# three of three digits. Hence this is a remark, which holds no grade.
ENOUGH_DIGITS, ENOUGH_NUMBERS = 8, 2
# Shorter texts are alike by chance.
FEWEST_LETTERS = 80
# Predictions are rounded to three digits or more.
ALIKE = 0.01


def numbers(right: Expected, parameters: Mapping[str, AxisValue], *results: Rows) -> dict[str, float]:
    """The numbers of a variant that students write about, by name: what is right, its parameters, and the results of
    its runs, of which the last ones count.
    """
    based = {name: base_value(value) for name, value in parameters.items()}
    values = {f"parameter {name}": value for name, value in based.items() if isinstance(value, float)}
    values |= {f"prediction {name}": value for name, value in right.predictions.items() if isinstance(value, float)}
    values |= {f"answer {name}": one.value for name, one in right.answers.items() if one.kind == "number"}
    cells = ((f"{name} {row.get('cell')}", ResultRow(row)) for rows in results for name in rows for row in rows[name])
    values |= {f"{cell} {column}": value for cell, row in cells for column, value in row.numbers.items()}
    return {name: value for name, value in values.items() if math.isfinite(value) and value}


def findings(one: Grade, grades: Sequence[Grade]) -> Iterator[Concern]:
    """What one submission has in common with others of the same assignment."""
    if one.expected is None:
        return
    others = [other for other in grades if other is not one and _is_comparable(one, other)]
    yield from _equal_texts(one, others)
    yield from _equal_logs(one, others)
    yield from _copied(one, others)


def _is_comparable(one: Grade, other: Grade) -> bool:
    """Whether both are of one assignment, and not of one student or group: there equality says nothing."""
    is_shared = bool(set(one.members) & set(other.members))
    return other.assignment == one.assignment and other.expected is not None and not is_shared


@dataclass(frozen=True)
class Known:
    """The digests of texts and programs that are no student's own: of what was handed out, and of the published
    solution, which an autograder's archive does not have.
    """

    common: AbstractSet[str]
    published: AbstractSet[str]

    @classmethod
    def of(cls, assignment: Assignment, marking: Marking) -> Known:
        """Those of an assignment."""
        files = (content.decode("utf-8", "replace") for _, content in handed_out(assignment.folder))
        return cls(_digests([BLANK_WRITE_UP, *files]), _digests(_published(marking.folder / SOLUTION)))


def _published(solution: Path) -> Iterator[str]:
    """The texts of a solution: its files, and its answers."""
    for path in (path for path in solution.glob("*") if path.is_file()):
        yield path.read_text(encoding="utf-8", errors="replace")
        if path.name == answers.FILE:
            yield from map(str, answers.read_answers(path.read_bytes(), path).given.values())


def _digests(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(map(_digest, texts))


def _digest(text: str) -> str:
    """Of a text's letters: editors and YAML have spaces and ends of lines of their own."""
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "replace")).hexdigest()


def wrote(one: Grade, write_up: str, known: Known) -> Grade:
    """The grade with what it is compared by: the digests of its texts, and the numbers in them that nothing of the
    student's own variant explains.

    Whoever has the grades of a class compares these and reads no text: a text is read once, where its submission is.
    """
    own = _Index((value, "") for value in one.numbers.values())
    long = (text for text in dict.fromkeys(_written(one, write_up)) if _digits(text) >= FEWEST_DIGITS)
    texts = {name: _digest(text) for name, text in one.texts.items() if len(text) >= FEWEST_LETTERS}
    digests = {name: digest for name, digest in texts.items() if digest not in known.common}
    return replace(one, digests=digests, foreign=tuple(text for text in long if not own.rounded_to(text)))


def from_solution(grade: Grade, known: Known) -> Iterator[Concern]:
    """Texts and programs that are the published solution's, letter for letter."""
    for name, digest in grade.digests.items():
        if digest in known.published:
            said = f"{name}: found the published solution, letter for letter; expected one's own"
            yield Concern(Code.PUBLISHED_SOLUTION, said)


def _equal_texts(one: Grade, others: Sequence[Grade]) -> Iterator[Concern]:
    for name, mine in one.digests.items():
        if alike := [other.student for other in others if mine in other.digests.values()]:
            yield Concern(Code.EQUAL_TEXTS, f"{name}: found the text of {_names(alike)}; expected one's own")


def _equal_logs(one: Grade, others: Sequence[Grade]) -> Iterator[Concern]:
    mine = _predicted(one)
    numbers = [end for given in mine.values() for end in given.split(answers.BETWEEN)]
    if len(mine) < ENOUGH_NUMBERS or sum(map(_digits, numbers)) < ENOUGH_DIGITS:
        return
    alike = (other for other in others if _predicted(other) == mine and not _have_alike_variants(one, other))
    if same := [other.student for other in alike]:
        said = f"found the predictions of {_names(same)}, each with the same digits; expected one's own"
        yield Concern(Code.EQUAL_LOGS, said)


def _have_alike_variants(one: Grade, other: Grade) -> bool:
    """Whether the same things are right for both, within what a prediction is rounded to: two who reckon alike then
    predict alike.
    """
    pairs = [(value, _right(other).get(name)) for name, value in _right(one).items()]
    return all(isinstance(theirs, float) and math.isclose(value, theirs, rel_tol=ALIKE) for value, theirs in pairs)


def _right(grade: Grade) -> dict[str, float]:
    predictions = grade.expected.predictions if grade.expected is not None else {}
    return {name: value for name, value in predictions.items() if isinstance(value, float)}


def _predicted(grade: Grade) -> dict[str, str]:
    return {part.name: part.given for part in grade.parts if part.kind == "prediction" and part.given}


def _copied(one: Grade, others: Sequence[Grade]) -> Iterator[Concern]:
    # Of all texts that round the same number, the longest: a cheat may write thousands.
    shared: dict[str, dict[float, str]] = {other.student: {} for other in others}
    for text, exact, student in _shared(one, others):
        shared[student][exact] = max(text, shared[student].get(exact, ""), key=_digits)
    # Who was copied from comes before whom chance brings in.
    found = ((student, list(_apart(texts.values()))) for student, texts in shared.items())
    for student, same in sorted(found, key=lambda item: -sum(map(_digits, item[1]))):
        if len(same) >= ENOUGH_NUMBERS and sum(map(_digits, same)) >= ENOUGH_DIGITS:
            said = f"found {', '.join(same[:5])}, which are right for the variant of {shown(student)}"
            yield Concern(Code.COPIED_NUMBERS, f"{said}; expected one's own")


def _shared(one: Grade, others: Sequence[Grade]) -> Iterator[tuple[str, float, str]]:
    """The numbers that a student wrote and that are right for others, with the right number and whose it is."""
    theirs = _Index((value, other.student) for other in others for value in other.numbers.values())
    for text in dict.fromkeys(one.foreign):
        yield from ((text, exact, student) for exact, student in theirs.rounded_to(text))
    # Where the same was asked, a count of two digits says something, too; not one's own number in another unit.
    for part in one.parts:
        if part.label in one.numbers and part.kind == "answer" and part.earned != part.points:
            for text in _numbers(part.given[:LONGEST_NUMBER]):
                if len(text.replace(".", "").lstrip("0")) < 2 or _is_rounded(text, one.numbers[part.label]):
                    continue
                right = ((other.numbers.get(part.label, 0), other.student) for other in others)
                yield from ((text, *of) for of in right if _is_rounded(text, of[0]))


def _apart(texts: Iterable[str]) -> Iterator[str]:
    """The numbers without those that are another one of them, rounded: a number in two roundings is one."""
    every = list(dict.fromkeys(texts))
    for text in every:
        rounded = (other for other in every if _is_rounded(text, float(other)))
        if max(rounded, key=lambda other: (_digits(other), other)) == text:
            yield text


class _Index:
    """Exact numbers with their owners, by what is the same in whatever power of 1000: a text may have as many numbers
    as it has room for.
    """

    def __init__(self, numbers: Iterable[tuple[float, str]]) -> None:
        positive = ((_place(value), value, owner) for value, owner in numbers if value > 0)
        # Places lie on a circle: a number just below a power of 1000 is near to one just above it.
        self._sorted = sorted((place + turn, value, owner) for place, value, owner in positive for turn in (-1, 0, 1))

    def rounded_to(self, text: str) -> list[tuple[float, str]]:
        """The numbers of which a text is one, rounded to its digits, with their owners."""
        written = float(text)
        if written <= 0:
            return []
        # Half of the last of FEWEST_DIGITS digits is 0.5 % of a number at most, and log10(1.005) / 3 = 0.0007.
        place, near = _place(written), 0.001
        first = bisect_left(self._sorted, (place - near,))
        last = bisect_left(self._sorted, (place + near,))
        return [(value, owner) for _, value, owner in self._sorted[first:last] if _is_rounded(text, value)]


def _place(value: float) -> float:
    return math.log10(value) / 3 % 1


def _written(grade: Grade, write_up: str) -> Iterator[str]:
    """The numbers that a student wrote: in the write-up, in answers, and in texts."""
    asked = " ".join(part.question for part in grade.parts)
    known = set(_numbers(asked))
    texts = [write_up, *(part.given for part in grade.parts if part.kind == "answer" and part.earned != part.points)]
    for text in texts:
        yield from (found for found in _numbers(text) if found not in known)


def _numbers(text: str) -> list[str]:
    """The numbers of a text, also those whose thousands are apart, or that have their unit directly behind."""
    # As they look: without invisible letters.
    letters = (one for one in unicodedata.normalize("NFKC", text) if unicodedata.category(one) not in ("Cf", "Mn"))
    return NUMBER.findall(UNIT.sub(" ", THOUSANDS.sub("", "".join(letters))))


def _digits(text: str) -> int:
    """The digits of a number that say something: without leading zeros, and without the zeros that end a whole
    number. Of a ratio near 1, those of its distance from 1: many are as near.
    """
    digits = re.sub(r"^(1\.0|0\.9+(?=[0-8]|$))", ".", re.sub(r"[^\d.]", "", text))
    digits = digits.replace(".", "") if "." in digits else digits.rstrip("0")
    return len(digits.lstrip("0"))


def _is_rounded(text: str, exact: float) -> bool:
    """Whether a number is another one, rounded to its digits; in whatever power of ten a unit gives. 0 is none."""
    written, places = float(text), len(text.partition(".")[2])
    if written <= 0 or exact <= 0:
        return False
    scale = 10.0 ** (3 * round(math.log10(written / exact) / 3))
    return abs(written - exact * scale) <= 0.501 * 10.0**-places


def _names(students: Sequence[str]) -> str:
    return ", ".join(shown(name) for name in dict.fromkeys(students[:5]))
