"""The form of instructor/marking.yaml: how an assignment is marked. Formulas: expression.py; what they read of results: numbers.py."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from scpslab.documents.parts import Part, key
from scpslab.documents.quantities import Name
from scpslab_course.course.model import Points, Text, Trial

Share = Annotated[float, Field(ge=0, le=1)]
Tolerance = Annotated[float, Field(ge=0)]
Factor = Annotated[float, Field(gt=1)]
TRUTH = "Formula of the true value, in the unit of the question."


class Band(Part):
    """A number that is alike in all variants."""

    name: Text = key(says="What it is, for messages.", example="packets in flight")
    value: Text = key(says="A formula over the parameters, or over the results of a reference run.", example="rate * 2 * delay / 8 / 1500")
    at_least: float | None = key(None, says="Lower bound.", example=20)
    at_most: float | None = key(None, says="Upper bound.", example=200)
    because: Text = key(says="Why variants outside are easier or harder.", example="Fewer packets show no difference between the windows.")

    @model_validator(mode="after")
    def _has_a_bound(self) -> Self:
        if self.at_least is None and self.at_most is None:
            raise ValueError("found no bound; expected at_least, at_most or both")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError(f"found at_least {self.at_least:g} above at_most {self.at_most:g}; expected a band")
        return self


class Difficulty(Part):
    """Variants outside a band are drawn again."""

    attempts: Annotated[int, Field(ge=1, le=10_000)] = key(200, says="Draws for one student before the command gives up.", example=200)
    bands: Annotated[tuple[Band, ...], Field(min_length=1)] = key(says="All of them must hold.")


class LogRatio(Part):
    """By the ratio of prediction and truth, whichever is larger above: all points up to `full`, none from `zero` on, by its logarithm between them."""

    kind: Literal["log-ratio"]
    truth: Text = key(says=TRUTH, example='mean("transfer", "transfer_s")')
    full: Factor = key(1.1, says="The ratio up to which a prediction has all points.", example=1.25)
    zero: Factor = key(3, says="The ratio from which on it has none.", example=4)


class Distance(Part):
    """By the distance of prediction and truth: all points up to `full`, none from `zero` on, evenly between them. For values that may be 0."""

    kind: Literal["distance"]
    truth: Text = key(says=TRUTH, example='mean("transfer", "rtos")')
    full: Tolerance = key(says="The distance up to which a prediction has all points, in the unit of the question.", example=1)
    zero: Tolerance = key(says="The distance from which on it has none.", example=10)


class Interval(Part):
    """An interval without the truth has no points. One with it has all of them if high / low is at most `full`, and none if it is at least `zero`."""

    kind: Literal["interval"]
    truth: Text = key(says=TRUTH, example='mean("transfer", "goodput_bps") / 1000')
    full: Factor = key(1.5, says="The width, high / low, up to which an interval has all points.", example=1.5)
    zero: Factor = key(10, says="The width from which on it has none.", example=10)


class Word(Part):
    """All points for the right word."""

    kind: Literal["choice"]
    truth: Text = key(says="Formula that gives one of the words.", example='best("transfer", "goodput_bps", "stack")')


Scoring = Annotated[LogRatio | Distance | Interval | Word, Field(discriminator="kind")]


class Near(Part):
    """A wider tolerance with a part of the points."""

    relative: Tolerance | None = key(None, says="Share of the expected value.", example=0.1)
    absolute: Tolerance | None = key(None, says="Distance in the unit of the question.", example=2)
    share: Share = key(says="Share of the points.", example=0.5)
    comment: Text = key(says="What the student reads.", example="The right formula; check the rounding.")


class WrongNumber(Part):
    """A common mistake and its number."""

    value: Text = key(says="Formula of the number that the mistake gives.", example="rate * delay / 8 / 1000")
    share: Share = key(0, says="Share of the points.", example=0.3)
    comment: Text = key(says="What the student reads.", example="This is the one-way product: the acknowledgement needs its way back, too.")


class WrongWord(Part):
    """A common mistake among the choices."""

    value: Name = key(says="The word.", example="rate")
    share: Share = key(0, says="Share of the points.", example=0.0)
    comment: Text = key(says="What the student reads.", example="Compare the goodput with the rate of the link.")


class Item(Part):
    """One thing that a person looks for in a text."""

    says: Text = key(says="What is looked for.", example="Names the window, not the rate, as the limit.")
    points: Points = key(says="Points for it.", example=2)


class MarkedNumber(Part):
    """The number that is right, how near is near enough, and the numbers of common mistakes."""

    kind: Literal["number"]
    expected: Text = key(says="Formula of the right number, in the unit of the question.", example="rate * 2 * delay / 8 / 1000")
    relative: Tolerance = key(0, says="Near enough: a distance of this share of the expected value.", example=0.02)
    absolute: Tolerance = key(0, says="Near enough: this distance in the unit of the question. The wider of the two counts.", example=0.5)
    because: str = key("", says="The reason for the tolerance.", example="Answers rounded to two digits are right.")
    partial: tuple[Near, ...] = key((), says="Wider tolerances with a part of the points.")
    wrong: tuple[WrongNumber, ...] = key((), says="Common mistakes. The tolerances of the right number hold for them, too.")


class MarkedChoice(Part):
    """The word that is right, and comments on the others."""

    kind: Literal["choice"]
    expected: Text = key(says="Formula that gives the right word.", example='"window" if window < rate * delay / 4 else "rate"')
    wrong: tuple[WrongWord, ...] = key((), says="Comments on other words.")


class MarkedText(Part):
    """What a person looks for in a text."""

    kind: Literal["text"]
    rubric: Annotated[tuple[Item, ...], Field(min_length=1)] = key(says="What is looked for.")
    wrong: tuple[Text, ...] = key((), says="Common mistakes, for the person who marks.")


Marked = Annotated[MarkedNumber | MarkedChoice | MarkedText, Field(discriminator="kind")]


class MarkingFile(Part):
    """The top level of marking.yaml."""

    kind: Literal["marking"]
    version: Literal[1]
    difficulty: Difficulty | None = key(None, says="What is alike in all variants. Default: every draw is taken.")
    predictions: dict[Name, Scoring] = key({}, says="How each prediction is scored.")
    answers: dict[Name, Marked] = key(says="How each answer is marked.")
    deliverables: dict[str, tuple[Item, ...]] = key({}, says="What a person looks for in each deliverable that has points.")
    trials: dict[Name, Trial] = key(
        {}, says="Runs of deliverables that students do not see. Their scenarios are in the instructor's folder, and have no parameters of variants."
    )
    write_up: tuple[Item, ...] = key((), says="What a person looks for in the write-up.")
    regrade: Annotated[int, Field(ge=1)] = key(
        2, says="The number of cells of a submission that the grader runs again and compares byte for byte; it chooses them after the submission.", example=2
    )
