"""answers.yaml: a student's answers by the names of the questions: numbers with or without units, intervals, words.

What is right for one variant, how much of an answer or prediction is right, and practice.json, which tells everybody.
Formulas of marking.yaml are evaluated to plain numbers and words.
"""

import csv
import io
import json
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from scpslab.core import strict_json, units
from scpslab.core.choices import one_of
from scpslab.core.contents import content_of
from scpslab.core.errors import ScenarioError
from scpslab.core.names import shown
from scpslab.core.problems import KeyPath, Problem
from scpslab.documents.document import Places
from scpslab.documents.quantities import AxisValue
from scpslab.documents.yaml_lines import Form, read_content
from scpslab.plan import schema
from scpslab.plan.schema import Kinds, Part, PlanError, Range, Scalar
from scpslab.plan.values import Label, PlainText
from scpslab_course.course import model
from scpslab_course.course.assignment import PRACTICE, SOLUTION, Assignment, Marking
from scpslab_course.course.formulas import FormulaError, Rows, Value
from scpslab_course.course.model import Answer, AssignmentFile, MarkedChoice, MarkedNumber, Prediction
from scpslab_course.course.variant import Variant

# Possessive: whatever follows a number, spaces are looked at once. What is before and behind is stripped first. No unit
# begins with a point: 1..2 is no number.
NUMBER = re.compile(
    r"([+-]?(?:\d{1,30}\.?\d{0,30}|\.\d{1,30})(?:[eE][+-]?\d{1,3})?)\s*+((?![\d.]).*)", re.ASCII | re.DOTALL
)
COMMA = re.compile(r"\s*[+-]?\d+,\d+.*", re.ASCII | re.DOTALL)
BETWEEN = ".."
# Quantities that questions ask for and scenarios have not; and how people write units, whatever their case.
DISTANCE = {"m": 1, "km": 10**3, "million km": 10**9}
SPELT = {"\N{MICRO SIGN}s": "us", "\N{GREEK SMALL LETTER MU}s": "us", "sec": "s", "mkm": "million km"}
BITS_PER_SECOND = re.compile(r"([kKmMgG]?)(?:bps|b/s|bits/s)")
FILE = "answers.yaml"
LARGEST_BYTES = 256 << 10
FORM = Form("answers", "the names of the questions", "the comments that the file began with")
WIDTH = 98  # of a question behind "# "
Share = Annotated[float, Range(0, 1)]
FORMAT = 1
AS_CLOSE_AS = 1e-3
LARGEST_PRACTICE = 1 << 20
HOW = "The practice variant with its answers; scpslab course practice NAME writes it again."
# Numbers that were computed twice may differ by this share: a formula and a student's calculator round differently.
ROUNDING = 1e-9
# A fraction where percent is asked is a slip like bits for bytes, and has the points that most markings give for those.
FRACTION_SHARE, FRACTION = 0.4, "This is a fraction. The question asks for percent."
# An interval of a prediction is one in which a student is 90 % sure.
ALPHA = 0.1


class GivenError(ValueError):
    """A text that is no answer to the question; the message says what was found and expected."""


def number(given: object, unit: str) -> float:
    """A number in the unit of the question.

    A text may have that unit or another one of its kind: 250 ms where the unit is s.

    Raises:
        GivenError: no number, or another unit.
    """
    expected = "expected a number" + (f" in {unit}, such as 12.5 or 12.5 {unit}" if unit else ", such as 12.5")
    if isinstance(given, int | float) and not isinstance(given, bool):
        if (found := _finite(given)) is None:
            raise GivenError(f"found a number without end; {expected}")
        return found
    text = given if isinstance(given, str) else ""
    if COMMA.fullmatch(text):
        raise GivenError(f"found {_said(given)}; {expected}, with a point for decimals, and nothing between thousands")
    match = NUMBER.fullmatch(text.strip())
    found = _finite(float(match[1])) if match else None
    if match is None or found is None:
        raise GivenError(f"found {_said(given)}; {expected}")
    if (in_unit := _finite(found * _factor(match[2], unit, given))) is None:
        raise GivenError(f"found {_said(given)}, which is too large; {expected}")
    return in_unit


def interval(given: object, unit: str) -> tuple[float, float]:
    """The ends of LOW..HIGH; a unit behind the second number is also that of the first.

    Raises:
        GivenError: no interval, or one that is upside down or not above 0.
    """
    first, _, second = given.partition(BETWEEN) if isinstance(given, str) else ("", "", "")
    if not first.strip() or not second.strip() or BETWEEN in second:
        raise GivenError(f"found {_said(given)}; expected LOW{BETWEEN}HIGH, such as 10{BETWEEN}20 {unit}".rstrip())
    begins, ends = (NUMBER.fullmatch(text.strip()) for text in (first, second))
    if begins is not None and ends is not None and bool(begins[2]) != bool(ends[2]):
        if begins[2]:
            advice = f"such as {begins[1]}{BETWEEN}{ends[1]} {begins[2]}"
            raise GivenError(f"found {_said(given)}; expected the unit behind the second number, {advice}")
        first = f"{first} {ends[2]}"
    high, low = number(second, unit), number(first, unit)
    if not 0 < low <= high:
        raise GivenError(f"found {_said(given)}; expected LOW{BETWEEN}HIGH with 0 < LOW <= HIGH")
    return low, high


def read_predicted(asked: Prediction, given: str) -> str:
    """A prediction as it was understood, in the unit of the question.

    Raises:
        GivenError: it is none, or it is outside of the bounds.
    """
    read = read_given(asked, given)
    if asked.kind == "choice" or not isinstance(read, tuple):
        return str(read)
    understood = " to ".join(f"{end:.6g}" for end in read) + f" {asked.unit}".rstrip()
    if outside := _outside(asked.within, read, asked.unit):
        raise GivenError(f"found {understood}; {outside}")
    return understood


def _outside(within: tuple[float, float] | None, found: Sequence[float], unit: str) -> str:
    """What is expected of numbers that are not all within bounds; "" if they are."""
    if within is None or within[0] <= min(found) <= max(found) <= within[1]:
        return ""
    low, high = within
    return f"expected {low:g} to {high:g} {unit}".rstrip() + ". Check unit and size of the number"


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
    table = _table_of(wanted)
    found = BITS_PER_SECOND.sub(r"\1bit/s", SPELT.get(found.casefold(), found))
    if (unit := next((unit for unit in table if _is_unit(unit, found)), None)) is not None:
        return table[unit] / table[wanted]
    expected = f"one of {', '.join(table or [wanted])}" if wanted else "a number alone"
    if "bit/s" in table and found.endswith(("B/s", "Bps")):
        expected += "; a byte (B) has 8 bits"
    raise GivenError(f"found {_said(given)} with the unit {shown(found)}; expected {expected}")


def _table_of(unit: str) -> Mapping[str, int]:
    """The units of the same kind, with their factors; none if it is no unit of quantities."""
    return next((table for table in (*units.KINDS.values(), DISTANCE) if unit in table), {})


def _is_unit(unit: str, found: str) -> bool:
    """Whether a student's word is a unit, whatever its case; but b is not B: a bit is no byte."""
    return found.casefold() == unit.casefold() and found.endswith("B") == unit.endswith("B")


def _wanted(asked: Answer | Prediction) -> str:
    return f"one of {', '.join(asked.choices)}" if asked.kind == "choice" else "some sentences"


def _said(given: object) -> str:
    if given is None:
        return "nothing"
    if isinstance(given, bool):
        return f"the word {str(given).lower()}"
    return "a list or keys" if isinstance(given, list | dict) else shown(str(given))


@dataclass(frozen=True)
class Answers:
    """What a student wrote, and where. A question without an answer has None."""

    given: Mapping[str, Any]
    places: Places

    def strange(self, file: AssignmentFile) -> Iterator[str]:
        """The names that are no questions."""
        for name in self.given:
            if name not in file.answers:
                yield f'{self.places.of((name,))}: found "{name}", which is no question; {one_of(name, file.answers)}'

    def complaints(self, file: AssignmentFile) -> Iterator[str]:
        """What is wrong with the form of the answers; nothing about whether they are right."""
        yield from self.strange(file)
        for name, asked in file.answers.items():
            if said := complaint(asked, self.given.get(name)):
                yield f"{self.places.of((name,))}: {said}"


def is_blank(given: object) -> bool:
    """Whether nothing stands behind the name of a question."""
    return given is None or (isinstance(given, str) and not given.strip())


def complaint(asked: Answer, given: object) -> str:
    """What is wrong with the form of one answer; "" for nothing."""
    if is_blank(given):
        where = "below its name, indented by two spaces" if asked.kind == "text" else "behind the colon"
        return f"found no answer; expected one. Write it {where}."
    try:
        read = read_given(asked, given)
    except GivenError as error:
        return f"{error}. Correct the answer."
    if asked.kind == "number" and isinstance(read, float) and (said := _outside(asked.within, [read], asked.unit)):
        return f"found {f'{read:g} {asked.unit}'.rstrip()}; {said}."
    if asked.kind == "text" and isinstance(read, str) and len(read.split()) > asked.most_words:
        expected = f"expected about {asked.words}, at most {asked.most_words}. Shorten the text."
        return f"found {len(read.split())} words; {expected}"
    return ""


def read_answers(content: bytes, path: Path) -> Answers:
    """The answers in a file.

    Raises:
        ScenarioError: not YAML, or too large.
    """
    if len(content) > LARGEST_BYTES:
        expected = f"expected answers of at most {LARGEST_BYTES}. Shorten the file."
        raise ScenarioError(f"{path}: found {len(content)} bytes; {expected}")
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
    for name, value in parameters.items():
        lines.append(f"#   {name} = {value}" + (f"    {file.variant[name].says}" if file.variant[name].says else ""))
    for name, answer in file.answers.items():
        lines += ["", *(f"# {line}" for line in asked_in(answer))]
        lines += [f"{name}: |", "  "] if answer.kind == "text" else [f"{name}:"]
    # Words of the assignment's author may have several lines.
    return "\n".join("\n# ".join(line.splitlines()) for line in lines) + "\n"


def asked_in(asked: Answer | Prediction) -> Iterator[str]:
    """The lines of a question: what is asked, in which form, the points, and the words to choose from."""
    yield from textwrap.wrap(asked.question, WIDTH, break_on_hyphens=False)
    if asked.kind == "choice":
        form = f"one of {', '.join(asked.choices)}"
    elif asked.kind == "text":
        form = f"about {asked.words} words, at most {asked.most_words}"
    else:
        what = "a number" if asked.kind == "number" else f"LOW{BETWEEN}HIGH"
        form = f"{what} in {asked.unit}" if asked.unit else what
    yield f"({form}; {asked.points:g} point{'' if asked.points == 1 else 's'})"
    if asked.kind == "choice":
        yield from (f"  {word}: {meaning}" for word, meaning in asked.choices.items())


class Mistake(Part):
    """A number or word that a common mistake gives, the share of the points for it, and what the student reads."""

    value: Annotated[float | str, Scalar()]
    share: Share
    comment: PlainText


class NearEnough(Part):
    """A distance from the right number, the share of the points up to there, and what the student reads."""

    distance: Annotated[float, Range(0)]
    share: Share
    comment: PlainText


class RightNumber(Part):
    """The right number in the unit of the question; `distance` is near enough for all points."""

    kind: Literal["number"]
    value: float
    distance: Annotated[float, Range(0)]
    partial: tuple[NearEnough, ...]
    wrong: tuple[Mistake, ...]


class RightWord(Part):
    """The right word."""

    kind: Literal["choice"]
    value: Label
    wrong: tuple[Mistake, ...]


Right = Annotated[RightNumber | RightWord, Kinds("kind", {"number": RightNumber, "choice": RightWord})]


class RightLines(Part):
    """The right values of a column of a CSV file, by those of the column that tells lines apart."""

    key: PlainText
    column: PlainText
    values: dict[PlainText, PlainText]


class Expected(Part):
    """True values of the predictions, right answers, and right lines of deliverables, by name.

    Texts have none: a person marks them.
    """

    predictions: dict[Label, Annotated[float | str, Scalar()]]
    answers: dict[Label, Right]
    lines: dict[Label, RightLines] | None = None


@dataclass(frozen=True)
class Evaluation:
    """Evaluates formulas of a marking for one variant and the results of its runs."""

    marking: Marking
    parameters: Mapping[str, AxisValue]
    rows: Rows

    def value(self, at: KeyPath) -> Value:
        """The value of the formula at a key path of marking.yaml.

        Raises:
            ScenarioError: it has none for this variant.
        """
        try:
            return self.marking.formulas[at].value(self.parameters, self.rows)
        except FormulaError as error:
            advice = "Correct the formula, or the ranges of the variant."
            raise self.marking.places.error([error.at(at, advice)]) from error

    def number(self, at: KeyPath) -> float:
        """The same; the value must be a number."""
        value = self.value(at)
        if isinstance(value, str):
            raise self._wrong(at, f'the text "{value}"', "a number")
        return value

    def word(self, at: KeyPath, choices: Mapping[str, str]) -> str:
        """The same; the value must be one of the choices."""
        value = self.value(at)
        if value not in choices:
            raise self._wrong(at, f'"{value}"', f"one of {', '.join(choices)}")
        return str(value)

    def _wrong(self, at: KeyPath, found: str, expected: str) -> ScenarioError:
        return self.marking.places.error([Problem(at, found, expected, "Correct the formula.")])


def expected(assignment: Assignment, marking: Marking, parameters: Mapping[str, AxisValue], rows: Rows) -> Expected:
    """What is right for these parameters and these results.

    Raises:
        ScenarioError: formulas without a value, or with one that is no answer.
    """
    evaluation = Evaluation(marking, parameters, rows)
    wrong: list[str] = []
    truths: dict[str, float | str] = {}
    answers: dict[str, RightNumber | RightWord] = {}
    at: KeyPath
    for name, prediction in assignment.file.predictions.items():
        at = ("predictions", name, "truth")
        try:
            if prediction.kind == "choice":
                truths[name] = evaluation.word(at, prediction.choices)
            else:
                truths[name] = evaluation.number(at)
        except ScenarioError as error:
            wrong.append(str(error))
    for name, answer in assignment.file.answers.items():
        marked, at = marking.file.answers[name], ("answers", name)
        try:
            if isinstance(marked, MarkedNumber):
                answers[name] = _right_number(evaluation, at, marked)
            elif isinstance(marked, MarkedChoice) and answer.kind == "choice":
                word = evaluation.word((*at, "expected"), answer.choices)
                mistakes = tuple(Mistake(**one.model_dump()) for one in marked.wrong)
                answers[name] = RightWord(kind="choice", value=word, wrong=mistakes)
        except ScenarioError as error:
            wrong.append(str(error))
    try:
        lines = {name: _right_lines(evaluation, name) for name in marking.file.lines}
    except ScenarioError as error:
        wrong.append(str(error))
    if wrong:
        raise ScenarioError("\n".join(wrong))
    return Expected(predictions=truths, answers=answers, lines=lines or None)


def _right_lines(evaluation: Evaluation, name: str) -> RightLines:
    at: KeyPath = ("lines", name)
    keys, values = (str(evaluation.value((*at, part))).split() for part in ("keys", "expected"))
    if len(keys) != len(values):
        problem = Problem(at, f"{len(keys)} keys and {len(values)} values", "as many", "Correct a formula.")
        raise evaluation.marking.places.error([problem])
    one = evaluation.marking.file.lines[name]
    return RightLines(key=one.by, column=one.column, values=dict(zip(keys, values, strict=True)))


def _right_number(evaluation: Evaluation, at: KeyPath, marked: MarkedNumber) -> RightNumber:
    right = evaluation.number((*at, "expected"))

    def distance(relative: float | None, absolute: float | None) -> float:
        return max(abs(right) * (relative or 0), absolute or 0)

    near = [
        NearEnough(distance=distance(one.relative, one.absolute), share=one.share, comment=one.comment)
        for one in marked.partial
    ]
    values = [evaluation.number((*at, "wrong", index, "value")) for index in range(len(marked.wrong))]
    told = zip(values, marked.wrong, strict=True)
    wrong = tuple(Mistake(value=value, share=one.share, comment=one.comment) for value, one in told)
    enough = distance(marked.relative, marked.absolute)
    return RightNumber(kind="number", value=right, distance=enough, partial=tuple(near), wrong=wrong)


class Practice(Part):
    """The file."""

    format_: Annotated[int, Range(FORMAT, FORMAT)]
    how: PlainText
    variant: Variant
    expected: Expected


def write_practice(variant: Variant, expected: Expected) -> str:
    """The text of the file."""
    practice = Practice(format_=FORMAT, how=HOW, variant=variant, expected=expected)
    return json.dumps(schema.write(practice), indent=1, ensure_ascii=False) + "\n"


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
        return schema.read(Practice, strict_json.loads(content_of(path, LARGEST_PRACTICE)))
    except OSError as error:
        raise ScenarioError(f"{path}: found {error.strerror}; expected a practice variant. {advice}") from error
    except (strict_json.JsonError, PlanError) as error:
        raise ScenarioError(f"{path}: {error}. {advice}") from error


@dataclass(frozen=True)
class Score:
    """A share of the points, 0 to 1, and what the student reads.

    `is_readable` is false for what is no answer at all. `wrong`: lines that are wrong, for who marks.
    """

    share: float
    comment: str
    is_readable: bool = True
    wrong: tuple[str, ...] = ()


def score_answer(asked: Answer, right: RightNumber | RightWord, given: object) -> Score:
    """How much of an answer is right."""
    try:
        read = read_given(asked, given)
    except GivenError as error:
        return Score(0, f"{error}.", is_readable=False)
    if isinstance(right, RightWord):
        mistakes = _by_mistake(right.wrong, lambda mistake: mistake.value == read)
        return Score(1, "right") if read == right.value else mistakes
    if not isinstance(read, float):
        return Score(0, "found no number.", is_readable=False)
    slack = abs(right.value) * ROUNDING
    distance = abs(read - right.value)
    if distance <= right.distance + slack:
        return Score(1, "right")
    # A mistake's own tolerance is the right number's, in proportion; of two mistakes the nearer one was made.
    relative = right.distance / abs(right.value) if right.value else 0
    is_share = asked.kind == "number" and asked.unit == units.PERCENT
    slips = [Mistake(value=right.value / 100, share=FRACTION_SHARE, comment=FRACTION)] if is_share else []
    nearest = sorted((*right.wrong, *slips), key=lambda one: abs(read - float(one.value)))
    mistakes = _by_mistake(
        nearest, lambda one: abs(read - float(one.value)) <= abs(float(one.value)) * relative + slack
    )
    near = max(
        (one for one in right.partial if distance <= one.distance + slack), key=lambda one: one.share, default=None
    )
    if near is not None and near.share >= mistakes.share:
        return Score(near.share, near.comment)
    return mistakes


def wrong_in(assignment: Assignment, marking: Marking, right: Expected) -> Iterator[str]:
    """What the answers of the solution lack: every number and word has all points. Without the file nothing is said.

    Raises:
        ScenarioError: the file cannot be read.
    """
    path = marking.folder / SOLUTION / FILE
    if not path.is_file():
        return
    given = read_answers(content_of(path, LARGEST_BYTES), path)
    yield from given.complaints(assignment.file)
    for name, one in right.answers.items():
        answer = given.given.get(name)
        score = score_answer(assignment.file.answers[name], one, answer)
        if score.share < 1:
            wanted = one.value if isinstance(one.value, str) else f"{one.value:.6g}"
            place = given.places.of((name,))
            yield f"{place}: found {_said(answer)} ({score.comment}); expected {wanted}, as marking.yaml has it"
    for file, lines in (right.lines or {}).items():
        path = marking.folder / SOLUTION / file
        if path.is_file() and (score := score_lines(lines, content_of(path))).share < 1:
            yield f"{path}: {score.comment}; expected all, as marking.yaml has them"


def score_prediction(asked: Prediction, scoring: model.Scoring, truth: float | str, given: object) -> Score:
    """How good a prediction was. Whether it came in time is for the caller to say."""
    try:
        read = read_given(asked, given)
    except GivenError as error:
        return Score(0, f"{error}.", is_readable=False)
    was = f"it was {truth if isinstance(truth, str) else f'{truth:.4g}'} {getattr(asked, 'unit', None) or ''}".rstrip()
    if isinstance(scoring, model.Interval) and isinstance(read, tuple) and not isinstance(truth, str):
        return Score(interval_share(*read, truth, scoring.factor), was)
    return Score(float(read == truth), was)


def interval_share(low: float, high: float, truth: float, factor: float) -> float:
    """The share of the points of an interval.

    The interval score of Gneiting and Raftery (Strictly Proper Scoring Rules, Prediction, and Estimation, 2007, eq. 43)
    for 1 - ALPHA, of the logarithms, so that it does not depend on units; divided so that a truth outside by `factor`
    leaves nothing. It ends at 0: no prediction costs points of others.
    """
    if truth <= 0:
        return 0.0
    below, above, exact = math.log(low), math.log(high), math.log(truth)
    score = above - below + 2 / ALPHA * max(below - exact, exact - above, 0.0)
    return max(0.0, 1 - ALPHA / 2 * score / math.log(factor))


def delimiter_of(text: str) -> str:
    """What stands between the fields of a CSV file: commas, or semicolons where its head has no comma."""
    first = text.split("\n", 1)[0]
    return ";" if ";" in first and "," not in first else ","


def score_lines(right: RightLines, content: bytes) -> Score:
    """How many lines of a student's CSV file are right. A line too many counts as a wrong one."""
    try:
        text = content.decode("utf-8-sig")
        head, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter_of(text), strict=True)
        names = [name.strip().casefold() for name in head]
        key, column = names.index(right.key), names.index(right.column)
        given = [(row[key].strip(), row[column].strip()) for row in rows if "".join(row).strip()]
    except (csv.Error, ValueError, IndexError):
        said = f"found no CSV with the columns {right.key} and {right.column} in every line."
        return Score(0, said, is_readable=False)
    hits = sum(right.values.get(name) == value.casefold() for name, value in dict(given).items())
    most = max(len(right.values), len(given))
    others = [(name, value) for name, value in given if right.values.get(name) != value.casefold()]
    first = f"; look at {right.key} {shown(others[0][0])}" if others and others[0][0] else ""
    wrong = (f"{right.key} {name}: {right.values.get(name, '-')}, not {shown(value)}" for name, value in others[:200])
    return Score(hits / most if most else 1.0, f"{hits} of {most} lines are right{first}", wrong=tuple(wrong))


def _by_mistake(mistakes: Iterable[Mistake], matches: Callable[[Mistake], bool]) -> Score:
    made = next((mistake for mistake in mistakes if matches(mistake)), None)
    return Score(made.share, made.comment) if made else Score(0, "not right")
