"""Shares of points for answers and predictions. Nothing here knows where an answer came from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scpslab_course.course.answers import GivenError, read_given
from scpslab_course.course.expected import Mistake, RightNumber, RightWord
from scpslab_course.course.model import Answer, Distance, Interval, LogRatio, Prediction, Scoring

# Numbers that were computed twice may differ by this share: a formula and a student's calculator round differently.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Score:
    """A share of the points, 0 to 1, and what the student reads. `is_readable` is false for what is no answer at all."""

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
        return _by_mistake(right.wrong, lambda mistake: mistake.value == found) if found != right.value else Score(1, "right")
    if not isinstance(found, float):
        return Score(0, "found no number.", is_readable=False)
    slack = abs(right.value) * ROUNDING
    distance = abs(found - right.value)
    if distance <= right.distance + slack:
        return Score(1, "right")
    # A mistake's own tolerance is the right number's, in proportion.
    relative = right.distance / abs(right.value) if right.value else 0
    mistakes = _by_mistake(right.wrong, lambda one: abs(found - float(one.value)) <= abs(float(one.value)) * relative + slack)
    near = max((one for one in right.partial if distance <= one.distance + slack), key=lambda one: one.share, default=None)
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
        return Score(_fall(math.log(high / low), math.log(scoring.full), math.log(scoring.zero)) if inside else 0, f"it was {truth:.4g}")
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
