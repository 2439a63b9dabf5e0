"""How a test reads a number in a text of an assignment, and computes it again."""

import math
import re
from dataclasses import dataclass
from functools import cache
from itertools import count, product
from types import SimpleNamespace

from scpslab_course.course.answers import Evaluation, read_practice
from scpslab_course.course.assignment import HANDOUT, INSTRUCTOR, NOTES, SOLUTION, find, load_assignment, load_marking
from scpslab_course.course.formulas import base_value
from scpslab_course.course.model import Choice, Formula, Range

LIGHT_M_PER_S, GEO_M = 299_792_458, 35_786e3
TEXTS = {
    "handout": HANDOUT,
    "notes": f"{INSTRUCTOR}/{NOTES}",
    "marking": f"{INSTRUCTOR}/marking.yaml",
    "answers": f"{INSTRUCTOR}/{SOLUTION}/answers.yaml",
    "write-up": f"{INSTRUCTOR}/{SOLUTION}/write-up.md",
    "oral": f"{INSTRUCTOR}/oral.md",
    "questions": "assignment.yaml",
    "steps": "steps.yaml",
}


@cache
def both(name):
    assignment = load_assignment(find(name))
    return assignment, load_marking(assignment)


@cache
def text(name, which):
    """A text with each run of white space as one space."""
    return " ".join((both(name)[0].folder / TEXTS[which]).read_text().split())


def parameters(values):
    """Parameters in base units: bit/s, seconds, bytes."""
    return SimpleNamespace(**{key: base_value(value) for key, value in values.items()})


@cache
def practice(name):
    return parameters(read_practice(both(name)[0]).variant.parameters)


@cache
def drawable(name):
    """All parameters that can be drawn: every value of each, within the bands that need no run."""
    assignment, marking = both(name)
    drawn_from = {
        key: one
        for key, one in assignment.file.variant.items()
        if isinstance(one, Choice | Range) and not key.startswith("pick")
    }
    # The ends and some between them are enough: all claims are monotonous in each parameter.
    between = 8 if len(drawn_from) < 5 else 2
    axes = {}
    for key, one in drawn_from.items():
        # Beyond the last value draws begin again with the first.
        size = next(number for number in count(1) if one.value_at(number) == one.value_at(0))
        axes[key] = [one.value_at(number) for number in sorted({*range(0, size, max(1, size // between)), size - 1})]
    found = []
    for values in product(*axes.values()):
        drawn = dict(zip(axes, values, strict=True))
        for key, one in assignment.file.variant.items():
            if isinstance(one, Formula):
                drawn[key] = one.computed(key, drawn)
        if all(band.holds(value) for band, value in _banded(marking, drawn)):
            found.append(parameters(drawn))
    return found


def _banded(marking, drawn):
    evaluation = Evaluation(marking, drawn, {})
    bands = marking.file.difficulty.bands if marking.file.difficulty else ()
    for index, band in enumerate(bands):
        at = ("difficulty", "bands", index, "value")
        if not marking.needs_results(at):
            yield band, evaluation.number(at)


@dataclass(frozen=True)
class Claim:
    """Numbers in a text, found by a pattern with a group for each, and how each is computed."""

    name: str
    which: str
    pattern: str
    exact: object

    def __str__(self):
        return f"{self.name}, {self.which}: {self.pattern[:50]}"


def of_practice(*formulas):
    return lambda name: [formula(practice(name)) for formula in formulas]


def bounds(formula):
    """The least and the largest value in all variants."""
    return lambda name: [pick(map(formula, drawable(name))) for pick in (min, max)]


def least(formula):
    return lambda name: [min(map(formula, drawable(name)))]


def most(formula):
    return lambda name: [max(map(formula, drawable(name)))]


def fixed(*values):
    return lambda name: list(values)


def band(index):
    """The bounds of a band of difficulty, as marking.yaml has them."""

    def values(name):
        found = both(name)[1].file.difficulty.bands[index]
        return [found.at_least, found.at_most]

    return values


def measured(*read):
    """What practice.json has."""
    return lambda name: [one(read_practice(both(name)[0]).expected) for one in read]


def rtt(v):
    return 2 * v.delay


def bdp_bytes(v):
    return v.rate * rtt(v) / 8


def per(ber, size_bytes):
    """The probability that independent errors hit a packet."""
    return -math.expm1(8 * size_bytes * math.log1p(-ber))


def mathis_window(v, ber):
    return math.sqrt(1.5 / per(ber, v.segment + 52))


def mathis_bps(v, ber=1e-6, b=1):
    return 8 * v.segment / rtt(v) * math.sqrt(3 / (2 * b * per(ber, v.segment + 52)))


def slow_start_rounds(v):
    """Round trips whose window, 10 segments and doubled each time, is below what the path holds."""
    room = bdp_bytes(v) / 1452
    return sum(1 for doubled in range(12) if 10 * 2**doubled < room)


def said(number):
    return float(number.replace(",", ""))


def prediction(name):
    return lambda expected: expected.predictions[name]


def answer(name):
    return lambda expected: expected.answers[name].value


def mistake(name, number, scale=1):
    """What a common mistake gives: a number of the same run."""
    return lambda expected: expected.answers[name].wrong[number].value * scale


def overtaken(v):
    """Packets of the old path behind the first one of the new path."""
    return (v.far - v.near) * v.rate / 8 / 1452


def holes(v):
    """Packets that arrive in an outage of 50 ms."""
    return 0.05 * v.rate / 8 / 1452


def enough_of_trials(name):
    """The bounds of a trial from which on it has all points, as assignment.yaml has them."""
    return [
        enough for trial in both(name)[0].file.trials.values() for enough in re.findall(r"/ ([\d.]+)\)", trial.share)
    ]


def in_solution(pattern):
    """A constant of the solution's program."""
    return lambda name: [
        float(one)
        for one in re.findall(pattern, (both(name)[0].folder / INSTRUCTOR / SOLUTION / "transport.py").read_text())
    ]
