"""What only a look at the whole class shows: texts and logs that are equal, and numbers that are right for another student's variant.

Numbers may agree by chance. They count only with the digits that make chance unlikely, and only if nothing of the student's own variant explains them.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from scpslab.course.expected import Expected
from scpslab.course.numbers import base_value
from scpslab.course.workspace import BLANK_WRITE_UP
from scpslab.documents.quantities import AxisValue
from scpslab.grading.grade import Code, Finding, Grade
from scpslab.grading.rerun import Rerun
from scpslab.names import shown

# A number in a text, without one that is a part of a name, a version or a date.
NUMBER = re.compile(r"(?<![\w.,:/-])\d{1,12}(?:\.\d{1,12})?(?![\w:/-]|\.\d|,\d)", re.ASCII)
FEWEST_DIGITS = 3
# Two numbers of four digits, or three of three: by chance less than once in a thousand classes of 60.
ENOUGH_DIGITS, ENOUGH_NUMBERS = 8, 2
SHORTEST_TEXT = 80


def numbers(right: Expected, parameters: Mapping[str, AxisValue], reruns: Mapping[str, Rerun]) -> dict[str, float]:
    """The numbers of a variant that students write about, by name: what is right, its parameters, and the results of its runs."""
    based = {name: base_value(value) for name, value in parameters.items()}
    found = {f"parameter {name}": value for name, value in based.items() if isinstance(value, float)}
    found |= {f"prediction {name}": value for name, value in right.predictions.items() if isinstance(value, float)}
    found |= {f"answer {name}": one.value for name, one in right.answers.items() if one.kind == "number"}
    for name, one in reruns.items():
        for row in one.rows:
            for column, text in row.items():
                value = _number(text)
                if value:
                    found[f"{name} {row['cell']} {column}"] = value
    return {name: value for name, value in found.items() if math.isfinite(value) and value}


def findings(one: Grade, grades: Sequence[Grade]) -> Iterator[Finding]:
    """What one submission has in common with others of the same assignment."""
    if one.expected is None:
        return
    others = [
        other for other in grades if other is not one and other.assignment == one.assignment and other.expected is not None and not _is_shared(one, other)
    ]
    yield from _equal_texts(one, others)
    yield from _equal_logs(one, others)
    yield from _copied(one, others)


def _is_shared(one: Grade, other: Grade) -> bool:
    """Whether both are of one student or group: there equality says nothing."""
    return bool(set(one.members) & set(other.members))


def _equal_texts(one: Grade, others: Sequence[Grade]) -> Iterator[Finding]:
    theirs: dict[str, list[str]] = defaultdict(list)
    for other in others:
        for digest in _texts(other).values():
            theirs[digest].append(other.student)
    for name, digest in _texts(one).items():
        if students := theirs.get(digest):
            yield Finding(Code.EQUAL_TEXTS, f"{name}: found the text of {_names(students)}; expected one's own")


def _texts(grade: Grade) -> dict[str, str]:
    """The digests of what a student wrote in sentences, by name; capitals, spaces and what everybody has do not count."""
    written = (part for part in grade.parts if part.kind == "deliverable" or (part.kind in ("answer", "write-up") and part.earned is None))
    texts = {part.name: part.given for part in written}
    plain = {name: " ".join(re.findall(r"\w+", text.casefold())) for name, text in texts.items()}
    blank = " ".join(re.findall(r"\w+", BLANK_WRITE_UP.casefold()))
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in plain.items() if len(text) >= SHORTEST_TEXT and text != blank}


def _equal_logs(one: Grade, others: Sequence[Grade]) -> Iterator[Finding]:
    mine = _predicted(one)
    if len(mine) < ENOUGH_NUMBERS or sum(map(_digits, mine.values())) < ENOUGH_DIGITS:
        return
    if same := [other.student for other in others if _predicted(other) == mine]:
        yield Finding(Code.EQUAL_LOGS, f"found the predictions of {_names(same)}, each with the same digits; expected one's own")


def _predicted(grade: Grade) -> dict[str, str]:
    return {part.name: part.given for part in grade.parts if part.kind == "prediction" and part.given}


def _copied(one: Grade, others: Sequence[Grade]) -> Iterator[Finding]:
    written = {text: float(text) for text in _written(one) if _digits(text) >= FEWEST_DIGITS}
    foreign = {text: value for text, value in written.items() if not any(_is_rounded(text, value, own) for own in one.numbers.values())}
    for other in others:
        theirs = [value for name, value in other.numbers.items() if name.startswith(("prediction", "answer"))]
        found = [text for text, value in foreign.items() if any(_is_rounded(text, value, own) for own in theirs)]
        if len(found) >= ENOUGH_NUMBERS and sum(map(_digits, found)) >= ENOUGH_DIGITS:
            yield Finding(Code.COPIED_NUMBERS, f"found {', '.join(found[:5])}, which are right for the variant of {shown(other.student)}; expected one's own")


def _written(grade: Grade) -> Iterator[str]:
    """The numbers that a student wrote: in the write-up, in answers, and in texts."""
    asked = " ".join(part.question for part in grade.parts)
    known = set(NUMBER.findall(asked))
    texts = [grade.write_up, *(part.given for part in grade.parts if part.kind == "answer" and part.earned != part.points)]
    for text in texts:
        yield from (found for found in NUMBER.findall(text) if found not in known)


def _digits(text: str) -> int:
    """The digits of a number that say something: without leading zeros, and without the zeros that end a whole number."""
    digits = re.sub(r"[^\d.]", "", text)
    digits = digits.replace(".", "") if "." in digits else digits.rstrip("0")
    return len(digits.lstrip("0"))


def _is_rounded(text: str, written: float, exact: float) -> bool:
    """Whether a number is another one, rounded to its digits; in whatever power of ten a unit gives."""
    if written <= 0 or exact <= 0:
        return False
    places = len(text.partition(".")[2])
    scale = 10.0 ** (3 * round(math.log10(written / exact) / 3))
    return abs(written - exact * scale) <= 0.501 * 10.0**-places


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _names(students: Sequence[str]) -> str:
    return ", ".join(shown(name) for name in dict.fromkeys(students[:5]))
