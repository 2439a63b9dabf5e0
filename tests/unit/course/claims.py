"""How a test reads a number in a text of an assignment, and computes it again."""

import math
import re
from functools import cache
from itertools import count, product
from types import SimpleNamespace

from scpslab_course.course.answers import Evaluation, read_practice
from scpslab_course.course.assignment import HANDOUT, INSTRUCTOR, NOTES, SOLUTION, find, load_assignment, load_marking
from scpslab_course.course.formulas import base_value
from scpslab_course.course.model import Choice, Formula, Range

LIGHT_M_PER_S, GEO_M = 299_792_458, 35_786e3
FRAME_S = 1505 * 10 / 115_200
SGLS_S = 0.0233
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
        if all(band.includes(value) for band, value in _banded(marking, drawn)):
            found.append(parameters(drawn))
    return found


def _banded(marking, drawn):
    evaluation = Evaluation(marking, drawn, {})
    bands = marking.file.difficulty.bands if marking.file.difficulty else ()
    for index, band in enumerate(bands):
        at = ("difficulty", "bands", index, "value")
        if not marking.needs_results(at):
            yield band, evaluation.number(at)


def numbers(name, formulas):
    """The numbers of formulas, one in each line. Names are those of this file; `v` are the parameters."""
    return [number for line in formulas.splitlines() for number in _numbers(name, line)]


def _numbers(name, line):
    pick, formula = re.fullmatch(r"(?:(bounds|least|most): )?(.+)", line).groups()
    code = compile(formula, line, "eval")
    known = vars(math) | globals() | _of(name)
    if pick:
        values = [eval(code, known | {"v": one}) for one in drawable(name)]  # noqa: S307 (a file of ours)
        return [choose(values) for choose in PICKS[pick]]
    value = eval(code, known | {"v": practice(name)})  # noqa: S307 (a file of ours)
    return value if isinstance(value, list) else [value]


PICKS = {"bounds": (min, max), "least": (min,), "most": (max,)}


def _of(name):
    """What formulas read in an assignment's files, and in its practice.json."""
    assignment, marking = both(name)
    expected = read_practice(assignment).expected

    def band(place):
        """The bounds of a band of difficulty, as marking.yaml has them."""
        found = marking.file.difficulty.bands[place]
        return [found.at_least, found.at_most]

    def enough_of_trial(place):
        """From which share on trials have all points, as assignment.yaml has it."""
        shares = [trial.share for trial in assignment.file.trials.values()]
        return float(re.findall(r"/ ([\d.]+)\)", " ".join(shares))[place])

    def in_solution(pattern):
        """A constant of the solution's program."""
        return float(*re.findall(pattern, (assignment.folder / INSTRUCTOR / SOLUTION / "transport.py").read_text()))

    found = (band, enough_of_trial, in_solution)
    measured = {one.__name__: lambda *words, one=one: one(*words)(expected) for one in (prediction, answer, mistake)}
    return {one.__name__: one for one in found} | measured


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


def echo_s(v, payload):
    """The round-trip time of an echo request with IP's and ICMP's headers, on an idle link of the same rate back."""
    return rtt(v) + 2 * (payload + 28) * 8 / v.rate


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
