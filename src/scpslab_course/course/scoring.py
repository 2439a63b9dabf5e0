"""What is right for one variant, how much of an answer or prediction is right, and practice.json, which tells
everybody.

Formulas of marking.yaml are evaluated to plain numbers and words. Nothing here knows where an answer came from.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from scpslab.core import strict_json
from scpslab.core.errors import ScenarioError
from scpslab.documents import KeyPath
from scpslab.documents.quantities import AxisValue
from scpslab.documents.yaml_lines import content_of
from scpslab.plan import schema
from scpslab.plan.schema import Kinds, PlanError, Range, Scalar
from scpslab.plan.values import Label, PlainText
from scpslab_course.course.answers import GivenError, read_given
from scpslab_course.course.assignment import PRACTICE, Assignment, Marking
from scpslab_course.course.formulas import FormulaError, Rows, Value, advised, base_value, functions
from scpslab_course.course.model import (
    Answer,
    Distance,
    Interval,
    LogRatio,
    MarkedChoice,
    MarkedNumber,
    Prediction,
    Scoring,
)
from scpslab_course.course.variant import Variant

Share = Annotated[float, Range(0, 1)]
FORMAT = 1
AS_CLOSE_AS = 1e-3
LARGEST_BYTES = 1 << 20
HOW = "The practice variant with its answers; scpslab course practice NAME writes it again."
# Numbers that were computed twice may differ by this share: a formula and a student's calculator round differently.
ROUNDING = 1e-9


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
            raise self._marking.places.error(
                [(at, advised(error, "Correct the formula, or the ranges of the variant."))]
            ) from error

    def number(self, at: KeyPath) -> float:
        """The same; the value must be a number."""
        value = self.value(at)
        if isinstance(value, str):
            raise self._marking.places.error(
                [(at, f'found the text "{value}"; expected a number. Correct the formula.')]
            )
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
            truths[name] = (
                _word(evaluation, at, prediction.choices, marking)
                if prediction.kind == "choice"
                else evaluation.number(at)
            )
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
        raise marking.places.error(
            [(at, f'found "{value}"; expected one of {", ".join(choices)}. Correct the formula.')]
        )
    return str(value)


def _right_number(evaluation: Evaluation, at: KeyPath, marked: MarkedNumber) -> RightNumber:
    right = evaluation.number((*at, "expected"))

    def distance(relative: float | None, absolute: float | None) -> float:
        return max(abs(right) * (relative or 0), absolute or 0)

    near = tuple(
        NearEnough(distance=distance(one.relative, one.absolute), share=one.share, comment=one.comment)
        for one in marked.partial
    )
    mistakes = tuple(
        Mistake(value=evaluation.number((*at, "wrong", index, "value")), share=one.share, comment=one.comment)
        for index, one in enumerate(marked.wrong)
    )
    return RightNumber(
        kind="number", value=right, distance=distance(marked.relative, marked.absolute), partial=near, wrong=mistakes
    )


def _right_word(word: str, marked: MarkedChoice) -> RightWord:
    return RightWord(
        kind="choice",
        value=word,
        wrong=tuple(Mistake(value=one.value, share=one.share, comment=one.comment) for one in marked.wrong),
    )


@dataclass(frozen=True, kw_only=True)
class Practice:
    """The file."""

    format_: Annotated[int, Range(FORMAT, FORMAT)]
    how: PlainText
    variant: Variant
    expected: Expected


def write_practice(variant: Variant, expected: Expected) -> str:
    """The text of the file."""
    return (
        json.dumps(
            schema.write(Practice(format_=FORMAT, how=HOW, variant=variant, expected=expected)),
            indent=1,
            ensure_ascii=False,
        )
        + "\n"
    )


def agree(practice: Practice, variant: Variant, expected: Expected) -> bool:
    """Whether a file says of a variant what is expected: the same words, and numbers within a thousandth.

    Another kernel moves packets by microseconds.
    """
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
        return schema.read(Practice, strict_json.loads(content_of(path, LARGEST_BYTES)))
    except OSError as error:
        raise ScenarioError(f"{path}: found {error.strerror}; expected a practice variant. {advice}") from error
    except (strict_json.JsonError, PlanError) as error:
        raise ScenarioError(f"{path}: {error}. {advice}") from error


@dataclass(frozen=True)
class Score:
    """A share of the points, 0 to 1, and what the student reads.

    `is_readable` is false for what is no answer at all.
    """

    share: float
    comment: str
    is_readable: bool = True


def score_answer(asked: Answer, right: RightNumber | RightWord, given: object) -> Score:
    """How much of an answer is right."""
    try:
        found = read_given(asked, given)
    except GivenError as error:
        return Score(0, f"{error}.", is_readable=False)
    if isinstance(right, RightWord):
        return (
            _by_mistake(right.wrong, lambda mistake: mistake.value == found)
            if found != right.value
            else Score(1, "right")
        )
    if not isinstance(found, float):
        return Score(0, "found no number.", is_readable=False)
    slack = abs(right.value) * ROUNDING
    distance = abs(found - right.value)
    if distance <= right.distance + slack:
        return Score(1, "right")
    # A mistake's own tolerance is the right number's, in proportion.
    relative = right.distance / abs(right.value) if right.value else 0
    mistakes = _by_mistake(
        right.wrong, lambda one: abs(found - float(one.value)) <= abs(float(one.value)) * relative + slack
    )
    near = max(
        (one for one in right.partial if distance <= one.distance + slack), key=lambda one: one.share, default=None
    )
    if near is not None and near.share >= mistakes.share:
        return Score(near.share, near.comment)
    return mistakes


def score_prediction(asked: Prediction, scoring: Scoring, truth: float | str, given: object) -> Score:
    """How good a prediction was. Whether it came in time is for the caller to say."""
    try:
        found = read_given(asked, given)
    except GivenError as error:
        return Score(0, f"{error}.", is_readable=False)
    if isinstance(scoring, Interval) and isinstance(found, tuple) and not isinstance(truth, str):
        low, high = found
        inside = low * (1 - ROUNDING) <= truth <= high * (1 + ROUNDING)
        return Score(
            _fall(math.log(high / low), math.log(scoring.full), math.log(scoring.zero)) if inside else 0,
            f"it was {truth:.4g}",
        )
    if isinstance(scoring, LogRatio | Distance) and isinstance(found, float) and not isinstance(truth, str):
        return Score(_by_distance(scoring, found, truth), f"it was {truth:.4g}")
    return Score(float(found == truth), f"it was {truth}")


def _by_distance(scoring: LogRatio | Distance, found: float, truth: float) -> float:
    if isinstance(scoring, Distance):
        return _fall(abs(found - truth), scoring.full, scoring.zero)
    if found <= 0 or truth <= 0:
        return float(found == truth)
    ratio = found / truth
    # A ratio that no number holds is far from 1.
    return _fall(abs(math.log(ratio)), math.log(scoring.full), math.log(scoring.zero)) if ratio else 0.0


def _fall(value: float, full: float, zero: float) -> float:
    """1 up to `full`, 0 from `zero` on, evenly between them."""
    return min(1.0, max(0.0, (zero - value) / (zero - full))) if value > full * (1 + ROUNDING) else 1.0


def _by_mistake(mistakes: tuple[Mistake, ...], matches: Callable[[Mistake], bool]) -> Score:
    found = next((mistake for mistake in mistakes if matches(mistake)), None)
    return Score(found.share, found.comment) if found else Score(0, "not right")
