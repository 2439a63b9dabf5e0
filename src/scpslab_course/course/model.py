"""The forms of assignment.yaml and instructor/marking.yaml: what is asked, what differs by student and how it is drawn,
how it is marked.

What formulas may be: formulas.py.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from scpslab.core import units
from scpslab.core.problems import UnfitError
from scpslab.documents.parts import Band, Part, Spelt, Version, key
from scpslab.documents.quantities import PAIR, AxisValue, Name
from scpslab_course.course.formulas import NANOSECONDS, FormulaError, kind_of, parse

FILE, MARKING, SCENARIO_SUFFIX = "assignment.yaml", "marking.yaml", ".yaml"
Text = Annotated[str, Field(min_length=3)]
# The name of a parameter is a name in formulas, where "-" is minus.
PARAMETER = r"^[a-z][a-z0-9_]{0,39}$"
ParameterName = Annotated[
    str, Spelt(PARAMETER, "a name: a small letter first, then small letters, digits and _, 40 at most")
]
# Others add points up as they are shown, in hundredths. Editors cannot divide by 0.01: their schema says nothing of it.
Points = Annotated[float, Field(ge=0, le=1000, multiple_of=0.01, json_schema_extra=lambda of: of.pop("multipleOf"))]
OWN_FILE = r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,79}$"
FileName = Annotated[str, Spelt(OWN_FILE, "a file's name: a letter, digit or _, then also . and -, 80 at most")]
Targets = tuple[str, ...]
SETS = (
    "The values of the scenarios that it sets: paths as `--set` has them. `transfer:seed` sets it in scenario transfer "
    "alone. A parameter without one is for questions."
)
SAYS = "What it is, for the student's list of parameters."
WORDS = "The words, each with its meaning."
COMMENT = "What the student reads."
SETS_EXAMPLE = ["links.hop.forward.rate", "transfer:seed"]
UNIT = "The unit of the answer. A student may give the number alone, or with any unit of the same kind."
Words = Annotated[dict[Name, str], Field(min_length=2)]
Before = Annotated[
    tuple[Name, ...],
    Field(description="The scenarios that it has to be made before. Default: all.", examples=[["transfer"]]),
]
Share = Annotated[float, Field(ge=0, le=1)]
Tolerance = Annotated[float, Field(ge=0)]
Factor = Annotated[float, Field(gt=1)]
LARGEST_SEED, MOST_VALUES = 999_999_999, 1_000_000
QUANTITY_OF = {"bit/s": "rate", "s": "duration", "B": "size"}
TRUTH = "Formula of the true value, in the unit of the question."


class DrawError(UnfitError):
    """A parameter from which no value can be drawn; `name`: which one, if the draw was of several."""

    def __init__(self, found: str, expected: str, advice: str = "", name: str = "") -> None:
        super().__init__(found, expected, advice)
        self.name = name


class Choice(Part):
    """A value drawn from a list.

    Attributes:
        values: The values, all of one kind.
    """

    kind: Literal["choice"]
    values: Annotated[tuple[AxisValue, ...], Field(min_length=1)] = key(example=["1 Mbit/s", "2 Mbit/s", "4 Mbit/s"])
    set: Targets = key((), says=SETS, example=SETS_EXAMPLE)
    says: str = key("", says=SAYS, example="Rate of the data path.")

    def value_at(self, number: int) -> AxisValue:
        """The value of that number, counted from 0 and beyond the last from 0 again."""
        return self.values[number % len(self.values)]


class Range(Part):
    """A value drawn from evenly spaced ones: from, from + step, … up to `to`.

    Attributes:
        from_: The first value, with its unit if it has one.
        to: No value is above this one.
        step: The distance of two values.
    """

    kind: Literal["range"]
    from_: int | float | str = key(example="150 ms", alias="from")
    to: int | float | str = key(example="350 ms")
    step: int | float | str = key(example="5 ms")
    set: Targets = key((), says=SETS, example=SETS_EXAMPLE)
    says: str = key("", says=SAYS, example="One-way delay.")

    def value_at(self, number: int) -> AxisValue:
        """The value of that number, counted from 0 and beyond the last from 0 again.

        Raises:
            DrawError: there are no values, or too many.
        """
        given = (self.from_, self.to, self.step)
        kinds = {kind_of(value) if isinstance(value, str) else None for value in given}
        kind = next(iter(kinds))
        if len(kinds) > 1 or (kind is None and any(isinstance(value, str) for value in given)):
            expected = "three numbers, or three quantities of one kind, such as 150 ms, 350 ms, 5 ms"
            raise DrawError(", ".join(map(str, given)), expected)
        first, last, step = (Decimal(units.parse(kind, value) if kind else str(value)) for value in given)
        if step <= 0 or last < first:
            found = f"from {self.from_} to {self.to} in steps of {self.step}"
            raise DrawError(found, '"to" above "from", and a step above 0')
        count = int((last - first) / step) + 1
        if count > MOST_VALUES:
            raise DrawError(f"{count} values", f"at most {MOST_VALUES}", "Choose a larger step.")
        value = first + step * (number % count)
        return units.text(kind, int(value)) if kind else _plain(value, is_whole=not isinstance(self.from_, float))


class Seed(Part):
    """A whole number from 1 to 999 999 999: the root of a scenario's random streams."""

    kind: Literal["seed"]
    set: Targets = key(("seed",), says=SETS, example=["seed"])
    says: str = key("", says=SAYS, example="Where bit errors fall.")

    def value_at(self, number: int) -> AxisValue:
        """The seed of that number, counted from 0."""
        return number % LARGEST_SEED + 1


class Formula(Part):
    """A value computed from the parameters above it, so that variants are of the same difficulty.

    Attributes:
        value: The formula; parameters are in bit/s, s and bytes.
        unit: The unit of the number that the formula gives.
        step: The number is rounded to a multiple of this.
    """

    kind: Literal["formula"]
    value: Text = key(example="rate * 2 * delay / 8")
    unit: Literal["bit/s", "s", "B", ""] = key("", example="B")
    step: Annotated[float, Field(gt=0)] = key(1, example=1500)
    set: Targets = key(says=SETS, example=["links.hop.forward.queue.limit"])
    says: str = key("", says=SAYS, example="The buffer: one bandwidth-delay product.")

    def computed(self, name: str, values: Mapping[str, AxisValue]) -> AxisValue:
        """The value of the parameter, which has this name, from those above it.

        Raises:
            DrawError: the formula has none.
        """
        try:
            number = parse(self.value, values).value(values)
        except FormulaError as error:
            raise DrawError(error.problem.found, error.problem.expected, error.problem.advice, name) from error
        if isinstance(number, str):
            raise DrawError(f'the text "{number}" as value of {name}', "a number", name=name)
        per_unit = NANOSECONDS if self.unit == "s" else 1
        most = units.LARGEST / per_unit
        if abs(number) > most or abs(number / self.step) > units.LARGEST:
            found = f"{number:g} as value of {name}, in steps of {self.step:g}"
            raise DrawError(found, f"at most {most:g}, and at most {units.LARGEST:g} steps", name=name)
        rounded = Decimal(round(number / self.step)) * Decimal(str(self.step))
        if not self.unit:
            return _plain(rounded)
        if rounded * per_unit < 1:
            raise DrawError(f"{rounded} {self.unit} as value of {name}", "more than 0", name=name)
        return units.text(QUANTITY_OF[self.unit], int(rounded * per_unit))


def _plain(number: Decimal, *, is_whole: bool = True) -> int | float:
    return int(number) if is_whole and number == number.to_integral_value() else float(number)


Parameter = Annotated[Choice | Range | Seed | Formula, Field(discriminator="kind")]


@dataclass(frozen=True)
class Whose:
    """The name under which a variant is drawn: a student's, or `group/NAME`."""

    term: str
    assignment: str
    student: str


def drawn(secret: bytes, whose: Whose, parameters: Mapping[str, Parameter], attempt: int) -> dict[str, AxisValue]:
    """A value for every parameter. The same secret and names give the same values for ever (decision 0702).

    Raises:
        DrawError: a range or a formula without values.
    """
    values: dict[str, AxisValue] = {}
    for name, parameter in parameters.items():
        if isinstance(parameter, Formula):
            values[name] = parameter.computed(name, values)
            continue
        said = json.dumps([whose.term, whose.assignment, whose.student, name, attempt], ensure_ascii=False)
        values[name] = parameter.value_at(int.from_bytes(hmac.digest(secret, said.encode(), hashlib.sha256)))
    return values


def _upward(bounds: tuple[float, float]) -> tuple[float, float]:
    if bounds[0] > bounds[1]:
        raise UnfitError(f"{bounds[0]:g} above {bounds[1]:g}", "the lower bound first")
    return bounds


Bounds = Annotated[tuple[float, float], PAIR, AfterValidator(_upward)]


class IntervalPrediction(Part):
    """An interval, LOW..HIGH, in which the student is 90 % sure to find the number.

    Attributes:
        question: What is to be predicted.
        points: Points for an interval that was given in time.
    """

    kind: Literal["interval"]
    question: Text = key(example="Between which bounds will the goodput be?")
    unit: str = key("", says=UNIT, example="kbit/s")
    within: Bounds | None = key(
        None,
        says="Bounds that every sensible prediction keeps; `predict` refuses another one.",
        example=[50, 100000],
    )
    points: Points = key(1, example=1)
    before: Before = ()


class ChoicePrediction(Part):
    """One of several words.

    Attributes:
        question: What is to be predicted.
        points: Points for the right word in time.
    """

    kind: Literal["choice"]
    question: Text = key(example="Which congestion control will be fastest?")
    choices: Words = key(says=WORDS, example={"cubic": "CUBIC", "bbr": "BBR"})
    points: Points = key(1, example=1)
    before: Before = ()


Prediction = Annotated[IntervalPrediction | ChoicePrediction, Field(discriminator="kind")]


class NumberAnswer(Part):
    """A number, compared with what the student's own variant gives.

    Attributes:
        question: The question.
        points: Points for the right number.
        within: Bounds that every sensible answer keeps; `check` says when one does not.
    """

    kind: Literal["number"]
    question: Text = key(example="What is the bandwidth-delay product?")
    unit: str = key("", says=UNIT, example="kB")
    points: Points = key(1, example=2)
    within: Bounds | None = key(None, example=[0, 1000])


class ChoiceAnswer(Part):
    """One of several words.

    Attributes:
        question: The question.
        points: Points for the right word.
    """

    kind: Literal["choice"]
    question: Text = key(example="What limits the transfer?")
    choices: Words = key(says=WORDS, example={"window": "the receive window", "rate": "the rate of the link"})
    points: Points = key(1, example=1)


class TextAnswer(Part):
    """Sentences, which a person marks by the rubric.

    Attributes:
        question: The question.
        words: The number of words that is enough; `check` says when it is exceeded by half.
        points: The most that the rubric gives.
    """

    kind: Literal["text"]
    question: Text = key(example="Why does the goodput not reach the rate of the link?")
    words: Annotated[int, Field(ge=1, le=5000)] = key(150, example=80)
    points: Points = key(example=4)

    @property
    def most_words(self) -> int:
        """The words above which `check` complains."""
        return self.words * 3 // 2


Answer = Annotated[NumberAnswer | ChoiceAnswer | TextAnswer, Field(discriminator="kind")]


class Deliverable(Part):
    """A file of the student's that is handed in besides the answers, from the folder of the assignment.

    Attributes:
        file: Its name.
        says: What it holds.
        required: Whether `submit` refuses to go on without it.
        points: The most that its rubric, its trials and its lines give together.
    """

    file: FileName = key(example="controller.py")
    says: Text = key(example="Your rate controller.")
    required: bool = key(True, example=False)
    points: Points = key(0, example=5)


class Trial(Part):
    """A run of a student's program: the scenario with the student's file beside it.

    Each cell gives a share of the points, and the trial their mean.

    Attributes:
        scenario: The scenario beside this file, without `.yaml`; its workload of kind `policy` or `transport` names it.
        file: The deliverable that is put beside the scenario.
        says: What is tried.
        share: Formula of the share of the points, from the results of one completed cell; below 0 it is 0, above 1 it
            is 1. Other cells give nothing.
        points: Points for it, which are a part of the deliverable's.
        shows: Columns of results.csv that the student reads.
    """

    scenario: Name = key(example="channel")
    file: FileName = key(example="controller.py")
    says: Text = key(example="A hop with a short queue.")
    share: Text = key(example='mean("channel", "utilization") / 0.8')
    points: Points = key(0, example=2)
    shows: tuple[Name, ...] = key(("transfer_s", "utilization", "efficiency"), example=["goodput_bps", "efficiency"])


class HiddenTrial(Trial):
    """A trial that students do not see. Its scenario is in the instructor's folder.

    Attributes:
        variant: What is drawn for it, once for a course and term: everybody's program meets the same values, and nobody
            without the course's secret knows them. The formula of the share reads these.
    """

    variant: dict[ParameterName, Parameter] = key({})

    @property
    def is_drawn(self) -> bool:
        """Whether its values depend on a secret."""
        return any(not isinstance(one, Choice) or len(one.values) > 1 for one in self.variant.values())

    def drawn(self, key: bytes, term: str, assignment: str, name: str) -> dict[str, AxisValue]:
        """The values of the trial of that name.

        Raises:
            DrawError: see `drawn`.
        """
        # No student or group has such a name.
        return drawn(key, Whose(term, assignment, f"trial/{name}"), self.variant, 0)

    def fixed(self, values: Mapping[str, AxisValue]) -> HiddenTrial:
        """The trial with these values alone, which every key draws."""
        only = {
            name: Choice(kind="choice", values=(values[name],), set=one.set, says=one.says)
            for name, one in self.variant.items()
        }
        return self.model_copy(update={"variant": only})


class AssignmentFile(Part):
    """The top level of assignment.yaml.

    Attributes:
        title: One line.
        summary: Two sentences for the list of assignments.
        goals: What a student can do afterwards.
        prerequisites: What a student needs to know before.
        minutes: Working time that most students need.
        scenarios: The scenarios beside this file, without `.yaml`; they are run in this order.
        variant: What differs from student to student, drawn in this order.
        predictions: What is predicted before the runs.
        answers: What is asked.
        deliverables: Further files to hand in.
        trials: Runs of deliverables that `check` carries out, too. Those that students do not see are in marking.yaml.
        write_up: Whether `write-up.md` is handed in.
        write_up_points: The most that the rubric gives for the write-up.
    """

    kind: Literal["assignment"]
    version: Version
    title: Text = key(example="First steps: delay, rate and their product")
    summary: str = key("")
    goals: Annotated[tuple[Text, ...], Field(min_length=1)] = key(example=["Compute a bandwidth-delay product"])
    prerequisites: tuple[Text, ...] = key((), example=["TCP's sliding window"])
    minutes: Annotated[int, Field(ge=1, le=6000)] = key(example=90)
    scenarios: Annotated[tuple[Name, ...], Field(min_length=1)] = key(example=["transfer"])
    variant: dict[ParameterName, Parameter] = key({})
    predictions: dict[Name, Prediction] = key({})
    answers: Annotated[dict[Name, Answer], Field(min_length=1)]
    deliverables: tuple[Deliverable, ...] = key(())
    trials: dict[Name, Trial] = key({})
    write_up: bool = key(True, example=True)
    write_up_points: Points = key(0, example=5)

    @model_validator(mode="after")
    def _names_scenarios_that_it_has(self) -> Self:
        if len(set(self.scenarios)) < len(self.scenarios):
            raise UnfitError("a scenario twice", "each once")
        return self

    @property
    def points(self) -> float:
        """All points together."""
        parts = (*self.predictions.values(), *self.answers.values(), *self.deliverables)
        return sum(part.points for part in parts) + (self.write_up_points if self.write_up else 0)


def split_target(target: str) -> tuple[str, str]:
    """The scenario and the path of `SCENARIO:PATH`; a path alone has the scenario ""."""
    only, colon, path = target.partition(":")
    return (only, path) if colon else ("", target)


class DifficultyBand(Band):
    """A number that is alike in all variants.

    Attributes:
        name: What it is, for messages.
        value: A formula over the parameters, or over the results of a reference run.
        because: Why variants outside are easier or harder.
    """

    name: Text = key(example="packets in flight")
    value: Text = key(example="rate * 2 * delay / 8 / 1500")
    because: Text = key(example="Fewer packets show no difference between the windows.")


class Difficulty(Part):
    """Variants outside a band are drawn again.

    Attributes:
        attempts: Draws for one student before the command gives up.
        bands: All of them must hold.
    """

    attempts: Annotated[int, Field(ge=1, le=10_000)] = key(200, example=200)
    bands: Annotated[tuple[DifficultyBand, ...], Field(min_length=1)]


class Interval(Part):
    """The share of the points is 1 - w/20 - m, at least 0: w is the width of the interval, m how far the truth is
    outside, both as powers of `factor`.

    The interval in which a student is 90 % sure has most points on average.

    Attributes:
        factor: The factor by which the truth is outside of an interval without points. It is to be larger than a
            student's honest surprise, and the handout prints it.
    """

    kind: Literal["interval"]
    truth: Text = key(says=TRUTH, example='mean("transfer", "goodput_bps") / 1000')
    factor: Factor = key(4, example=2)


class Word(Part):
    """All points for the right word.

    Attributes:
        truth: Formula that gives one of the words.
    """

    kind: Literal["choice"]
    truth: Text = key(example='best("transfer", "goodput_bps", "stack")')


Scoring = Annotated[Interval | Word, Field(discriminator="kind")]


class Near(Part):
    """A wider tolerance with a part of the points.

    Attributes:
        relative: Share of the expected value.
        absolute: Distance in the unit of the question.
        share: Share of the points.
    """

    relative: Tolerance | None = key(None, example=0.1)
    absolute: Tolerance | None = key(None, example=2)
    share: Share = key(example=0.5)
    comment: Text = key(says=COMMENT, example="The right formula; check the rounding.")


class WrongNumber(Part):
    """A common mistake and its number.

    Attributes:
        value: Formula of the number that the mistake gives.
        share: Share of the points.
    """

    value: Text = key(example="rate * delay / 8 / 1000")
    share: Share = key(0, example=0.3)
    comment: Text = key(
        says=COMMENT, example="This is the one-way product: the acknowledgement needs its way back, too."
    )


class WrongWord(Part):
    """A common mistake among the choices.

    Attributes:
        value: The word.
        share: Share of the points.
    """

    value: Name = key(example="rate")
    share: Share = key(0, example=0.0)
    comment: Text = key(says=COMMENT, example="Compare the goodput with the rate of the link.")


class Lines(Part):
    """A CSV file of the student's whose lines are marked one by one: the share of the lines that are right.

    Attributes:
        by: The column that tells lines apart.
        keys: Formula of its right values, as words.
        column: The column that is marked.
        expected: Formula of its right values, in the same order.
        points: Points for them, which are a part of the deliverable's.
    """

    by: Text = key(example="frame")
    keys: Text = key(example='words("trace", "resend_frames")')
    column: Text = key(example="cause")
    expected: Text = key(example='words("trace", "resend_causes")')
    points: Points = key(example=2)


class Item(Part):
    """One thing that a person looks for in a text.

    Attributes:
        says: What is looked for.
        points: Points for it.
    """

    says: Text = key(example="Names the window, not the rate, as the limit.")
    points: Points = key(example=2)


class MarkedNumber(Part):
    """The number that is right, how near is near enough, and the numbers of common mistakes.

    Attributes:
        expected: Formula of the right number, in the unit of the question.
        relative: Near enough: a distance of this share of the expected value.
        absolute: Near enough: this distance in the unit of the question. The wider of the two counts.
        because: The reason for the tolerance.
        partial: Wider tolerances with a part of the points.
        wrong: Common mistakes. The right number's tolerance holds for them in proportion: 1 % is 1 %.
    """

    kind: Literal["number"]
    expected: Text = key(example="rate * 2 * delay / 8 / 1000")
    relative: Tolerance = key(0, example=0.02)
    absolute: Tolerance = key(0, example=0.5)
    because: str = key("", example="Answers rounded to two digits are right.")
    partial: tuple[Near, ...] = key(())
    wrong: tuple[WrongNumber, ...] = key(())


class MarkedChoice(Part):
    """The word that is right, and comments on the others.

    Attributes:
        expected: Formula that gives the right word.
        wrong: Comments on other words.
    """

    kind: Literal["choice"]
    expected: Text = key(example='"window" if window < rate * delay / 4 else "rate"')
    wrong: tuple[WrongWord, ...] = key(())


class MarkedText(Part):
    """What a person looks for in a text.

    Attributes:
        rubric: What is looked for.
        wrong: Common mistakes, for the person who marks.
    """

    kind: Literal["text"]
    rubric: Annotated[tuple[Item, ...], Field(min_length=1)]
    wrong: tuple[Text, ...] = key(())


Marked = Annotated[MarkedNumber | MarkedChoice | MarkedText, Field(discriminator="kind")]


class MarkingFile(Part):
    """The top level of marking.yaml.

    Attributes:
        difficulty: What is alike in all variants. Default: every draw is taken.
        predictions: How each prediction is scored.
        answers: How each answer is marked.
        deliverables: What a person looks for in each deliverable that has points.
        lines: Deliverables whose lines are marked one by one.
        trials: Runs of deliverables that students do not see.
        write_up: What a person looks for in the write-up.
        regrade: Of the cells that no formula reads, how many the grader runs again and compares byte for byte; it
            chooses them after the submission.
    """

    kind: Literal["marking"]
    version: Version
    difficulty: Difficulty | None = key(None)
    predictions: dict[Name, Scoring] = key({})
    answers: dict[Name, Marked]
    deliverables: dict[str, tuple[Item, ...]] = key({})
    lines: dict[str, Lines] = key({})
    trials: dict[Name, HiddenTrial] = key({})
    write_up: tuple[Item, ...] = key(())
    regrade: Annotated[int, Field(ge=1)] = key(2, example=2)
