"""answers.yaml: a student's answers by the names of the questions: numbers with or without units, intervals, words."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scpslab.core import units
from scpslab.core.choices import one_of
from scpslab.core.errors import ScenarioError
from scpslab.core.names import shown
from scpslab.documents import Form, Places
from scpslab.documents.quantities import AxisValue
from scpslab.documents.yaml_lines import read_content
from scpslab_course.course.model import Answer, AssignmentFile, Prediction

# Possessive: whatever follows a number, spaces are looked at once. What is before and behind is stripped first. No unit
# begins with a point: 1..2 is no number.
NUMBER = re.compile(
    r"([+-]?(?:\d{1,30}\.?\d{0,30}|\.\d{1,30})(?:[eE][+-]?\d{1,3})?)\s*+((?![\d.]).*)", re.ASCII | re.DOTALL
)
COMMA = re.compile(r"\s*[+-]?\d+,\d+.*", re.ASCII | re.DOTALL)
BETWEEN = ".."
FILE = "answers.yaml"
LARGEST_BYTES = 256 << 10
FORM = Form("answers", "the names of the questions", "the comments that the file began with")
WIDTH = 100


class GivenError(ValueError):
    """A text that is no answer to the question; the message says what was found and expected."""


def number(given: object, unit: str) -> float:
    """A number in the unit of the question.

    A text may have that unit or another one of its kind: 250 ms where the unit is s.

    Raises:
        GivenError: no number, or another unit.
    """
    if isinstance(given, int | float) and not isinstance(given, bool):
        found = _finite(given)
        if found is None:
            raise GivenError(f"found a number without end; expected {_example(unit)}")
        return found
    has_comma = isinstance(given, str) and COMMA.fullmatch(given) is not None
    match = NUMBER.fullmatch(given.strip()) if isinstance(given, str) and not has_comma else None
    if match is None:
        hint = ", with a point where you have a comma" if has_comma else ""
        raise GivenError(f"found {_said(given)}; expected {_example(unit)}{hint}")
    found = _finite(float(match[1]))
    if found is None:
        raise GivenError(f"found {_said(given)}; expected {_example(unit)}")
    in_unit = _finite(found * _factor(match[2], unit, given))
    if in_unit is None:
        raise GivenError(f"found {_said(given)}, which is too large; expected {_example(unit)}")
    return in_unit


def interval(given: object, unit: str) -> tuple[float, float]:
    """The ends of LOW..HIGH; a unit behind the second number is also that of the first.

    Raises:
        GivenError: no interval, or one that is upside down or not above 0.
    """
    first, between, second = given.partition(BETWEEN) if isinstance(given, str) else ("", "", "")
    if not between or BETWEEN in second:
        raise GivenError(f"found {_said(given)}; expected LOW{BETWEEN}HIGH, such as 10{BETWEEN}20 {unit}".rstrip())
    last = NUMBER.fullmatch(second.strip())
    if last is not None and last[2] and (match := NUMBER.fullmatch(first.strip())) is not None and not match[2]:
        first = f"{first} {last[2]}"
    high, low = number(second, unit), number(first, unit)
    if not 0 < low <= high:
        raise GivenError(f"found {_said(given)}; expected LOW{BETWEEN}HIGH with 0 < LOW <= HIGH")
    return low, high


def read_predicted(asked: Prediction, given: str) -> None:
    """Refuses what is no prediction: in a unit of quantities nothing is expected to be 0 or less, neither as a number
    nor as an end of an interval.

    Raises:
        GivenError: it is none.
    """
    found = read_given(asked, given)
    if (
        asked.kind == "number"
        and isinstance(found, float)
        and found <= 0
        and any(asked.unit in table for table in units.KINDS.values())
    ):
        raise GivenError(f"found {_said(given)}; expected a number above 0 in {asked.unit}")


def read_given(asked: Answer | Prediction, given: object) -> float | str | tuple[float, float]:
    """An answer or prediction as the question wants it: a number in its unit, an interval, a word of its choices, or a
    text.

    Raises:
        GivenError: it is none.
    """
    if asked.kind == "number":
        return number(given, asked.unit)
    if asked.kind == "interval":
        return interval(given, asked.unit)
    if not isinstance(given, str) or not given.strip():
        raise GivenError(f"found {'nothing' if given is None or given == '' else 'no text'}; expected {_wanted(asked)}")
    if asked.kind != "choice" or given in asked.choices:
        return given
    alike = [word for word in asked.choices if word.casefold() == given.strip().casefold()]
    if len(alike) != 1:
        raise GivenError(f'found "{given[:60]}"; expected {_wanted(asked)}')
    return alike[0]


def _finite(value: float) -> float | None:
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _factor(found: str, wanted: str, given: object) -> float:
    if found in ("", wanted):
        return 1.0
    for table in units.KINDS.values():
        if wanted in table and (unit := next((one for one in table if _is_unit(one, found)), None)) is not None:
            return table[unit] / table[wanted]
    kind = next((table for table in units.KINDS.values() if wanted in table), {wanted: 1})
    expected = f"one of {', '.join(kind)}" if wanted else "a number alone"
    raise GivenError(f"found {_said(given)} with the unit {shown(found)}; expected {expected}")


def _is_unit(unit: str, found: str) -> bool:
    """Whether a student's word is a unit, whatever its case; but b is not B: a bit is no byte."""
    return found.casefold() == unit.casefold() and found.endswith("B") == unit.endswith("B")


def _wanted(asked: Answer | Prediction) -> str:
    return f"one of {', '.join(asked.choices)}" if asked.kind == "choice" else "some sentences"


def _example(unit: str) -> str:
    return f"a number in {unit}, such as 12.5 or 12.5 {unit}" if unit else "a number, such as 12.5"


def _said(given: object) -> str:
    if given is None:
        return "nothing"
    if isinstance(given, bool):
        return f"the word {str(given).lower()}"
    return (
        shown(given)
        if isinstance(given, str)
        else "a list or keys"
        if isinstance(given, list | dict)
        else shown(str(given))
    )


@dataclass(frozen=True)
class Answers:
    """What a student wrote, and where. A question without an answer has None."""

    given: Mapping[str, Any]
    places: Places

    def complaints(self, file: AssignmentFile) -> Iterator[str]:
        """What is wrong with the form of the answers; nothing about whether they are right."""
        for name in self.given:
            if name not in file.answers:
                yield f'{self.places.of((name,))}: found "{name}", which is no question; {one_of(name, file.answers)}'
        for name, asked in file.answers.items():
            if said := complaint(asked, self.given.get(name)):
                yield f"{self.places.of((name,))}: {said}"


def complaint(asked: Answer, given: object) -> str:
    """What is wrong with the form of one answer; "" for nothing."""
    if given is None or (isinstance(given, str) and not given.strip()):
        return "found no answer; expected one. Write it behind the colon."
    try:
        found = read_given(asked, given)
    except GivenError as error:
        return f"{error}. Correct the answer."
    if (
        asked.kind == "number"
        and isinstance(found, float)
        and asked.within is not None
        and not asked.within[0] <= found <= asked.within[1]
    ):
        return (
            f"found {found:g} {asked.unit}; expected {asked.within[0]:g} to {asked.within[1]:g} {asked.unit}. "
            "Check unit and size of the number."
        )
    if asked.kind == "text" and isinstance(found, str) and len(found.split()) > asked.most_words:
        return (
            f"found {len(found.split())} words; expected about {asked.words}, at most {asked.most_words}. "
            "Shorten the text."
        )
    return ""


def read_answers(content: bytes, path: Path) -> Answers:
    """The answers in a file.

    Raises:
        ScenarioError: not YAML, or too large.
    """
    if len(content) > LARGEST_BYTES:
        raise ScenarioError(
            f"{path}: found {len(content)} bytes; expected answers of at most {LARGEST_BYTES}. Shorten the file."
        )
    data, lines = read_content(content, path, FORM)
    return Answers(data, Places(path, lines))


def blank(file: AssignmentFile, parameters: Mapping[str, AxisValue]) -> str:
    """answers.yaml with the questions and without answers."""
    lines = [
        f"# Answers: {file.title}",
        "# Write each answer behind its colon. Numbers may have a unit; a text stands below, indented by two spaces.",
    ]
    if parameters:
        lines += ["#", "# Your parameters:"]
        lines += [
            f"#   {name} = {value}" + (f"    {file.variant[name].says}" if file.variant[name].says else "")
            for name, value in parameters.items()
        ]
    for name, answer in file.answers.items():
        lines += [
            "",
            *textwrap.wrap(answer.question, WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False),
            f"# ({_form_of(answer)}; {answer.points:g} point{'' if answer.points == 1 else 's'})",
        ]
        lines += (
            [f"#   {word}: {meaning}" for word, meaning in answer.choices.items()] if answer.kind == "choice" else []
        )
        lines += [f"{name}: |", "  "] if answer.kind == "text" else [f"{name}:"]
    # Words of the assignment's author may have several lines.
    return "\n".join("\n# ".join(line.splitlines()) for line in lines) + "\n"


def _form_of(answer: Answer) -> str:
    if answer.kind == "number":
        return f"a number in {answer.unit}" if answer.unit else "a number"
    return (
        f"one of {', '.join(answer.choices)}"
        if answer.kind == "choice"
        else f"about {answer.words} words, at most {answer.most_words}"
    )
