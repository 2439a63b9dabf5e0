"""What is right for one variant: the formulas of marking.yaml evaluated, and practice.json, where everybody can read it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from scpslab.core import strict_json
from scpslab.core.errors import ScenarioError
from scpslab.documents import KeyPath
from scpslab.documents.quantities import AxisValue
from scpslab.plan import schema
from scpslab.plan.schema import Kinds, PlanError, Range, Scalar
from scpslab.plan.values import Label, PlainText
from scpslab_course.course.assignment import PRACTICE, Assignment, Marking
from scpslab_course.course.formulas import FormulaError, Rows, Value, advised, base_value, functions
from scpslab_course.course.model import MarkedChoice, MarkedNumber
from scpslab_course.course.variant import Variant

Share = Annotated[float, Range(0, 1)]
FORMAT = 1
AS_CLOSE_AS = 1e-3
LARGEST_BYTES = 1 << 20
HOW = "The practice variant with its answers; scpslab course practice NAME writes it again."


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """A number or word that a common mistake gives, the share of the points for it, and what the student reads."""

    value: Annotated[float | str, Scalar()]
    share: Share
    comment: PlainText


@dataclass(frozen=True, kw_only=True)
class NearEnough:
    """A distance from the right number, the share of the points up to there, and what the student reads."""

    distance: Annotated[float, Range(0)]
    share: Share
    comment: PlainText


@dataclass(frozen=True, kw_only=True)
class RightNumber:
    """The right number in the unit of the question; `distance` is near enough for all points."""

    kind: Literal["number"]
    value: float
    distance: Annotated[float, Range(0)]
    partial: tuple[NearEnough, ...]
    wrong: tuple[Mistake, ...]


@dataclass(frozen=True, kw_only=True)
class RightWord:
    """The right word."""

    kind: Literal["choice"]
    value: Label
    wrong: tuple[Mistake, ...]


Right = Annotated[RightNumber | RightWord, Kinds("kind", {"number": RightNumber, "choice": RightWord})]


@dataclass(frozen=True, kw_only=True)
class Expected:
    """True values of the predictions, and right answers, by name. Texts have none: a person marks them."""

    predictions: dict[Label, Annotated[float | str, Scalar()]]
    answers: dict[Label, Right]


class Evaluation:
    """Evaluates formulas of a marking for one variant and the results of its runs."""

    def __init__(self, marking: Marking, parameters: Mapping[str, AxisValue], rows: Rows) -> None:
        self._marking = marking
        self._names = {name: base_value(value) for name, value in parameters.items()}
        self._functions = functions(rows, parameters)

    def value(self, at: KeyPath) -> Value:
        """The value of the formula at a key path of marking.yaml.

        Raises:
            ScenarioError: it has none for this variant.
        """
        try:
            return self._marking.formulas[at].value(self._names, self._functions)
        except FormulaError as error:
            raise self._marking.places.error([(at, advised(error, "Correct the formula, or the ranges of the variant."))]) from error

    def number(self, at: KeyPath) -> float:
        """The same; the value must be a number."""
        value = self.value(at)
        if isinstance(value, str):
            raise self._marking.places.error([(at, f'found the text "{value}"; expected a number. Correct the formula.')])
        return value


def expected(assignment: Assignment, marking: Marking, parameters: Mapping[str, AxisValue], rows: Rows) -> Expected:
    """What is right for these parameters and these results.

    Raises:
        ScenarioError: formulas without a value, or with one that is no answer.
    """
    evaluation = Evaluation(marking, parameters, rows)
    wrong: list[str] = []
    truths: dict[str, float | str] = {}
    answers: dict[str, RightNumber | RightWord] = {}
    for name, prediction in assignment.file.predictions.items():
        try:
            at: KeyPath = ("predictions", name, "truth")
            truths[name] = _word(evaluation, at, prediction.choices, marking) if prediction.kind == "choice" else evaluation.number(at)
        except ScenarioError as error:
            wrong.append(str(error))
    for name, answer in assignment.file.answers.items():
        marked, at = marking.file.answers[name], ("answers", name)
        try:
            if isinstance(marked, MarkedNumber):
                answers[name] = _right_number(evaluation, at, marked)
            elif isinstance(marked, MarkedChoice) and answer.kind == "choice":
                answers[name] = _right_word(_word(evaluation, (*at, "expected"), answer.choices, marking), marked)
        except ScenarioError as error:
            wrong.append(str(error))
    if wrong:
        raise ScenarioError("\n".join(wrong))
    return Expected(predictions=truths, answers=answers)


def _word(evaluation: Evaluation, at: KeyPath, choices: Mapping[str, str], marking: Marking) -> str:
    value = evaluation.value(at)
    if value not in choices:
        raise marking.places.error([(at, f'found "{value}"; expected one of {", ".join(choices)}. Correct the formula.')])
    return str(value)


def _right_number(evaluation: Evaluation, at: KeyPath, marked: MarkedNumber) -> RightNumber:
    right = evaluation.number((*at, "expected"))

    def distance(relative: float | None, absolute: float | None) -> float:
        return max(abs(right) * (relative or 0), absolute or 0)

    near = tuple(NearEnough(distance=distance(one.relative, one.absolute), share=one.share, comment=one.comment) for one in marked.partial)
    mistakes = tuple(
        Mistake(value=evaluation.number((*at, "wrong", index, "value")), share=one.share, comment=one.comment) for index, one in enumerate(marked.wrong)
    )
    return RightNumber(kind="number", value=right, distance=distance(marked.relative, marked.absolute), partial=near, wrong=mistakes)


def _right_word(word: str, marked: MarkedChoice) -> RightWord:
    return RightWord(kind="choice", value=word, wrong=tuple(Mistake(value=one.value, share=one.share, comment=one.comment) for one in marked.wrong))


@dataclass(frozen=True, kw_only=True)
class Practice:
    """The file."""

    format_: Annotated[int, Range(FORMAT, FORMAT)]
    how: PlainText
    variant: Variant
    expected: Expected


def write_practice(variant: Variant, expected: Expected) -> str:
    """The text of the file."""
    return json.dumps(schema.write(Practice(format_=FORMAT, how=HOW, variant=variant, expected=expected)), indent=1, ensure_ascii=False) + "\n"


def agree(practice: Practice, variant: Variant, expected: Expected) -> bool:
    """Whether a file says of a variant what is expected: the same words, and numbers within a thousandth. Another kernel moves packets by microseconds."""
    return practice.variant == variant and _close(schema.write(practice.expected), schema.write(expected))


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_close(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_close, one, other))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=AS_CLOSE_AS)
    return bool(one == other)


def read_practice(assignment: Assignment) -> Practice:
    """The practice variant of an assignment.

    Raises:
        ScenarioError: it has none, or the file cannot be read.
    """
    path: Path = assignment.folder / PRACTICE
    advice = f'Its author makes it: "scpslab course practice {assignment.name}".'
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise ScenarioError(f"{path}: found {path.stat().st_size} bytes; expected a practice variant. {advice}")
        return schema.read(Practice, strict_json.loads(path.read_bytes()))
    except OSError as error:
        raise ScenarioError(f"{path}: found {error.strerror}; expected a practice variant. {advice}") from error
    except (strict_json.JsonError, PlanError) as error:
        raise ScenarioError(f"{path}: {error}. {advice}") from error
