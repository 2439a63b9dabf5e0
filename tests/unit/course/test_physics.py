"""Every physical number that a handout, the notes, a marking or a solution states, computed again from the formula.

The number is read from the text: a text that says another one, or says it in other words, fails here. What a text says
of every variant is computed for all that can be drawn; what a solution says, for the practice variant.
"""

import math
import re
from dataclasses import dataclass
from functools import cache
from itertools import product
from types import SimpleNamespace

import pytest

from scpslab.core import units
from scpslab_course.course.answers import Evaluation, read_practice
from scpslab_course.course.assignment import HANDOUT, INSTRUCTOR, NOTES, SOLUTION, find, load_assignment, load_marking
from scpslab_course.course.formulas import base_value
from scpslab_course.course.model import Choice, Formula, Range
from scpslab_course.course.runs import run_of

LIGHT_M_PER_S, GEO_M = 299_792_458, 35_786e3
TEXTS = {
    "handout": HANDOUT,
    "notes": f"{INSTRUCTOR}/{NOTES}",
    "marking": f"{INSTRUCTOR}/marking.yaml",
    "answers": f"{INSTRUCTOR}/{SOLUTION}/answers.yaml",
    "write-up": f"{INSTRUCTOR}/{SOLUTION}/write-up.md",
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
    axes = {}
    for key, one in assignment.file.variant.items():
        if isinstance(one, Choice | Range) and not key.startswith("pick"):
            count = len(one.values) if isinstance(one, Choice) else _count(one)
            # The ends and some between them are enough: all claims are monotonous in each parameter.
            axes[key] = [one.value_at(number) for number in sorted({*range(0, count, max(1, count // 8)), count - 1})]
    found = []
    for values in product(*axes.values()):
        drawn = dict(zip(axes, values, strict=True))
        for key, one in assignment.file.variant.items():
            if isinstance(one, Formula):
                drawn[key] = one.computed(key, drawn)
        if all(band.holds(value) for band, value in _banded(marking, drawn)):
            found.append(parameters(drawn))
    return found


def _count(one):
    kind = next(kind for kind in units.KINDS if any(str(one.from_).endswith(f" {unit}") for unit in units.KINDS[kind]))
    first, last, step = (units.parse(kind, value) for value in (one.from_, one.to, one.step))
    return (last - first) // step + 1


def _banded(marking, drawn):
    evaluation = Evaluation(marking, drawn, {})
    for index, band in enumerate(marking.file.difficulty.bands):
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


FIRST, TRACE, NOISE, BLOAT = "first-steps", "read-a-trace", "corruption-or-congestion", "bufferbloat"
ACKS, PAPERS, OWN, SPACE = "ack-path", "three-papers", "write-your-own", "space-transport"
DEEP = "deep-space"
FRAME_S = 1505 * 10 / 115_200
SGLS_S = 0.0233
CLAIMS = [
    Claim(FIRST, "handout", r"satellite is ([\d,]+) km", fixed(round(GEO_M / 1e3, -3))),
    Claim(FIRST, "handout", r"needs at least (\d+) ms up and down", fixed(2 * GEO_M / LIGHT_M_PER_S * 1e3)),
    Claim(FIRST, "handout", r"here (\d+) to (\d+) ms", bounds(lambda v: v.delay * 1e3)),
    Claim(FIRST, "notes", r"product lies between (\d+) and (\d+) kB", band(0)),
    Claim(FIRST, "notes", r"file takes (\d+) to (\d+) round trips", band(1)),
    Claim(
        FIRST,
        "notes",
        r"first four round trips \(10, 20, 40 and 80 of (\d+) packets\)",
        of_practice(lambda v: (rtt(v) + (1452 + 52) * 8 / v.rate) * v.rate / 8 / 1452),
    ),
    Claim(
        FIRST,
        "notes",
        r"are (\d\.\d+) s of payload, (\d\.\d+) s of headers",
        of_practice(lambda v: v.size * 8 / v.rate, lambda v: v.size / 1400 * 52 * 8 / v.rate),
    ),
    Claim(FIRST, "marking", r"headers, (\d+) of the (\d+) bytes of a packet", fixed(20 + 20 + 12, 1400 + 52)),
    Claim(FIRST, "marking", r"second cause: (\d\.\d) % of the bytes", fixed(100 * 52 / 1452)),
    Claim(FIRST, "answers", r"headers, (\d\.\d) %", fixed(100 * 52 / 1452)),
    Claim(
        FIRST,
        "write-up",
        r"speed-up was (\d\.\d), not (\d)",
        lambda name: [*measured(prediction("speedup"))(name), *of_practice(lambda v: bdp_bytes(v) / v.window)(name)],
    ),
    Claim(TRACE, "handout", r"the file has (\d+) segments", fixed(700_000 / 1400)),
    Claim(TRACE, "notes", r"has (\d+) to (\d+) retransmissions", band(0)),
    Claim(TRACE, "answers", r"rises from (\d+) ms to", of_practice(lambda v: v.delay * 1e3)),
    Claim(TRACE, "answers", r"no acknowledgement arrives for (\d\.\d) s", of_practice(lambda v: 0.9 - v.delay)),
    Claim(NOISE, "handout", r"sqrt\(3/2\) = (\d\.\d+) for b = 1", fixed(math.sqrt(1.5))),
    Claim(NOISE, "notes", r"Mathis' window is (\d+) to (\d+) segments", bounds(lambda v: mathis_window(v, 1e-6))),
    Claim(NOISE, "marking", r"window at 1e-6 is (\d+) to (\d+) segments", bounds(lambda v: mathis_window(v, 1e-6))),
    Claim(NOISE, "notes", r"At 1e-5 the window is (\d) segments", least(lambda v: mathis_window(v, 1e-5))),
    Claim(NOISE, "notes", r"At 1e-5 the window is (\d) segments", most(lambda v: mathis_window(v, 1e-5))),
    Claim(
        NOISE,
        "notes",
        r"scatters by some (\d) %",
        most(lambda v: 100 / math.sqrt(2 * 1e7 / v.segment * per(1e-6, v.segment + 52))),
    ),
    Claim(
        NOISE,
        "notes",
        r"which is (\d) to (\d) % too large at 1e-5",
        bounds(lambda v: 100 * (1e-5 * 8 * (v.segment + 52) / per(1e-5, v.segment + 52) - 1)),
    ),
    Claim(NOISE, "notes", r"goodput at 1e-6 lies between (\d+) and (\d+) kbit/s", band(1)),
    Claim(NOISE, "notes", r"product between (\d+) and (\d+) segments", band(0)),
    Claim(
        NOISE,
        "marking",
        r"without the 12 bytes of timestamps are (\d\.\d) to (\d\.\d) % away",
        bounds(lambda v: 100 * (1 - per(1e-5, v.segment + 40) / per(1e-5, v.segment + 52))),
    ),
    Claim(
        NOISE,
        "marking",
        r"changes the result by (\d\.\d) %, 40 bytes of headers by (\d\.\d) %",
        lambda name: [
            *most(lambda v: 100 * (1 - math.sqrt(per(1e-6, v.segment + 52) / (8e-6 * (v.segment + 52)))))(name),
            *most(lambda v: 100 * (math.sqrt(per(1e-6, v.segment + 52) / per(1e-6, v.segment + 40)) - 1))(name),
        ],
    ),
    Claim(
        NOISE,
        "marking",
        r"Data bits alone change it by (\d) %",
        least(lambda v: 100 * (math.sqrt(per(1e-6, v.segment + 52) / per(1e-6, v.segment)) - 1)),
    ),
    Claim(
        NOISE,
        "answers",
        r"rise from (\d+) ms to (\d+) ms before",
        of_practice(lambda v: rtt(v) * 1e3, lambda v: (rtt(v) + v.small_buffer * 8 / v.rate) * 1e3),
    ),
    Claim(NOISE, "answers", r"by the (\d+) ms of the full queue", of_practice(lambda v: v.small_buffer * 8e3 / v.rate)),
    Claim(NOISE, "answers", r"a window of (\d+) segments never", of_practice(lambda v: mathis_window(v, 1e-6))),
    Claim(NOISE, "answers", r"about (\d\.\d) % of the packets", of_practice(lambda v: 100 * per(1e-6, v.segment + 52))),
    Claim(
        NOISE,
        "write-up",
        r"with b = 1 gives (\d+) kbit/s at 1e-6; Reno reached (\d+)",
        lambda name: [*of_practice(lambda v: mathis_bps(v) / 1e3)(name), *measured(answer("reno_measured"))(name)],
    ),
    Claim(NOISE, "write-up", r"BBR at 1e-5 is (\d+) times", measured(answer("bbr_gain"))),
    Claim(NOISE, "write-up", r"neighbour got ([\d.]+) % of", measured(answer("neighbour_share"))),
    Claim(
        BLOAT, "handout", r"one packet of 1452 B already takes (\d+) to (\d+) ms", bounds(lambda v: 1452 * 8e3 / v.rate)
    ),
    Claim(BLOAT, "handout", r"a page of (\d+) packets", fixed(math.ceil(50_000 / 1400))),
    Claim(BLOAT, "notes", r"queue of 512 kB holds (\d+) to (\d+) times", bounds(lambda v: 512e3 / bdp_bytes(v))),
    Claim(BLOAT, "notes", r"each of which is now (\d+) to (\d+) s long", bounds(lambda v: 512e3 * 8 / v.rate + rtt(v))),
    Claim(BLOAT, "notes", r"product lies between (\d+) and (\d+) kB", band(0)),
    Claim(BLOAT, "notes", r"longest wait between ([\d.]+) and (\d+) s", band(1)),
    Claim(
        BLOAT,
        "notes",
        r"queue's share of the bandwidth-delay product, (\d\.\d+) to (\d\.\d+)",
        bounds(lambda v: 8e3 / bdp_bytes(v)),
    ),
    Claim(BLOAT, "marking", r"512 KiB, the nearest mistake, are (\d\.\d) % away", fixed(100 * (524_288 / 512_000 - 1))),
    Claim(BLOAT, "marking", r"the round trip makes at least (\d) %", least(lambda v: 100 * bdp_bytes(v) / 512e3)),
    Claim(BLOAT, "marking", r"the (\d) ms that the echo request itself takes", most(lambda v: 84 * 8e3 / v.rate)),
    Claim(BLOAT, "answers", r"until the (\d+) kB of the product", of_practice(lambda v: bdp_bytes(v) / 1e3)),
    Claim(
        BLOAT,
        "answers",
        r"echo time of (\d\.\d) s is the round trip of (\d\.\d+) s and a wait of (\d\.\d) s",
        of_practice(lambda v: rtt(v) + 512e3 * 8 / v.rate, rtt, lambda v: 512e3 * 8 / v.rate),
    ),
    Claim(
        BLOAT,
        "write-up",
        r"was (\d\.\d) s: the wait of (\d\.\d) s",
        of_practice(lambda v: rtt(v) + 512e3 * 8 / v.rate, lambda v: 512e3 * 8 / v.rate),
    ),
    Claim(
        ACKS, "handout", r"has (\d+) bytes of headers \((\d+) IP, (\d+) TCP, (\d+) timestamps", fixed(52, 20, 20, 12)
    ),
    Claim(ACKS, "notes", r"asymmetry lies between (\d\.\d) and (\d+)", band(0)),
    Claim(ACKS, "marking", r"k is at least (\d\.\d) % too large", least(lambda v: 100 * 52 / v.segment)),
    Claim(ACKS, "marking", r"number is at least (\d\.\d) % too large", least(lambda v: 100 * 52 / v.segment)),
    Claim(
        ACKS,
        "answers",
        r"channel of ([\d.]+) kbit/s, which takes (\d\.\d) s",
        of_practice(lambda v: v.ack_rate / 1e3, lambda v: 100 * 52 * 8 / v.ack_rate),
    ),
    Claim(
        ACKS, "answers", r"return channel, (\d+) acknowledgements a second", of_practice(lambda v: v.ack_rate / 8 / 52)
    ),
    Claim(
        ACKS,
        "answers",
        r"asymmetry: ([\d.]+) bound: (\d+) kbit/s fewest: (\d)",
        of_practice(
            # RFC 3449 §2: the ratio of packet rates.
            lambda v: (v.rate / (8 * (v.segment + 52))) / (v.ack_rate / (8 * 52)),
            lambda v: v.ack_rate / (8 * 52) * 2 * 8 * v.segment / 1e3,
            lambda v: math.ceil(v.rate / (v.segment + 52) * 52 / v.ack_rate),
        ),
    ),
    Claim(PAPERS, "handout", r"stop bits are ([\d,]+) B/s", fixed(115_200 / 10)),
    Claim(
        PAPERS,
        "handout",
        r"too large by (\d) to (\d) %",
        bounds(lambda v: 100 * (v.ber * 8 * 1505 / per(v.ber, 1505) - 1)),
    ),
    Claim(PAPERS, "notes", r"A frame takes (\d+) ms", fixed(FRAME_S * 1e3)),
    Claim(PAPERS, "notes", r"near path holds (\d\.\d) of one in a round trip", fixed(2 * 0.0263 / FRAME_S)),
    Claim(PAPERS, "notes", r"the far path (\d\.\d) to (\d\.\d)\.", bounds(lambda v: 2 * (v.delay + SGLS_S) / FRAME_S)),
    Claim(PAPERS, "notes", r"Between (\d+) and (\d+) percent of full frames", band(0)),
    Claim(
        PAPERS,
        "answers",
        r"([\d,]+) B/s for (\d\.\d+) s are (\d+) bytes",
        of_practice(
            lambda v: 11_520, lambda v: 2 * (v.delay + SGLS_S), lambda v: round(2 * (v.delay + SGLS_S) * 11_520, -2)
        ),
    ),
    Claim(
        PAPERS,
        "answers",
        r"stay near the (\d+) s that ([\d.]+) % of lost frames leave",
        of_practice(lambda v: v.size / 1448 * 1505 / 11_520 / (1 - per(v.ber, 1505)), lambda v: 100 * per(v.ber, 1505)),
    ),
    Claim(
        OWN, "handout", r"A packet has (\d+) B on the hop, and (\d+) B of them are data", fixed(956 + 16 + 8 + 20, 956)
    ),
    Claim(OWN, "handout", r"queue has room for (\d+) packets", fixed(20_000 / 1000)),
    Claim(OWN, "notes", r"Between (\d+) and (\d+) packets are in flight", band(0)),
    Claim(
        OWN,
        "answers",
        r"on_their_way: (\d+) one_measured: ([\d.]+) kbit/s",
        of_practice(
            lambda v: v.rate * rtt(v) / 8000,
            # One round trip, the packet and its answer.
            lambda v: 956 * 8 / (rtt(v) + (1000 + 60) * 8 / v.rate) / 1e3,
        ),
    ),
    Claim(OWN, "write-up", r"queue holds (\d+) of (\d+) packets", fixed(20, math.ceil(100_000 / 956))),
    Claim(SPACE, "handout", r"sends (\d+) datagrams", fixed(math.ceil(400_000 * 10 / 8 / 1400))),
    Claim(SPACE, "notes", r"(\d+) to (\d+) packets fit into a round trip", bounds(lambda v: bdp_bytes(v) / 1456)),
    Claim(SPACE, "notes", r"With (\d+) to (\d+) % of the packets lost", bounds(lambda v: 100 * per(v.ber, 1456))),
    Claim(SPACE, "marking", r"products: (\d+) to (\d+) packets on the fast hop", bounds(lambda v: bdp_bytes(v) / 1456)),
    Claim(
        SPACE,
        "answers",
        r"times (\d\.\d+) s = (\d+) kB, about (\d+) packets of (\d+) bytes",
        of_practice(rtt, lambda v: bdp_bytes(v) / 1e3, lambda v: bdp_bytes(v) / 1456, lambda v: 1400 + 52 + 4),
    ),
    Claim(SPACE, "answers", r"the product is (\d+) bytes", of_practice(lambda v: 9600 * rtt(v) / 8)),
    Claim(
        SPACE,
        "answers",
        r"and (\d+) of the others' (\d+) datagrams",
        lambda name: [*measured(answer("others_lost"))(name), math.ceil(400_000 * 10 / 8 / 1400)],
    ),
    Claim(SPACE, "write-up", r"a gain of (\d+)\. My errors", fixed(88 / 8)),
    Claim(DEEP, "handout", r"light covers ([\d,]+) km in a second", fixed(LIGHT_M_PER_S / 1e3)),
    Claim(
        DEEP, "handout", r"takes (\d+) to (\d+) minutes", fixed(54e9 / LIGHT_M_PER_S / 60, 401e9 / LIGHT_M_PER_S / 60)
    ),
    Claim(DEEP, "notes", r"six repetitions gives (\d+) s", fixed(sum(2**doubled for doubled in range(7)))),
    Claim(DEEP, "answers", r"the round trip is (\d+) s", of_practice(rtt)),
    Claim(
        DEEP,
        "answers",
        r"takes (\d+\.\d) MB in a round trip of (\d+) minutes",
        of_practice(lambda v: bdp_bytes(v) / 1e6, lambda v: rtt(v) / 60),
    ),
    Claim(
        DEEP,
        "answers",
        r"or (\d\.\d) round trips after",
        lambda name: [
            practice(name).size * 8 / measured(answer("tcp_goodput"))(name)[0] / rtt(practice(name)),
        ],
    ),
]


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_a_number_in_a_text_is_the_one_of_the_formula(claim):
    found = re.findall(claim.pattern, text(claim.name, claim.which))
    assert len(found) == 1, f"{claim}: found {len(found)} times"
    numbers = (found[0],) if isinstance(found[0], str) else found[0]
    exact = claim.exact(claim.name)
    assert len(numbers) == len(exact)
    for number, value in zip(numbers, exact, strict=True):
        decimals = len(number.partition(".")[2])
        assert abs(said(number) - value) <= 0.5 * 10**-decimals + 1e-9, f"{claim}: says {number}; computed {value:g}"


def test_slow_start_of_first_steps_takes_the_round_trips_that_the_notes_say():
    words = {"three": 3, "four": 4, "five": 5}
    low, high = re.findall(r"slow start takes (\w+) to (\w+) round trips", text(FIRST, "notes"))[0]
    rounds = {slow_start_rounds(v) for v in drawable(FIRST)}
    assert (words[low], words[high]) == (min(rounds), max(rounds))


def test_codels_settings_have_the_shares_that_the_handout_gives():
    """RFC 8289 §4.3: the target is 5 to 10 % of the interval."""
    handout = text(BLOAT, "handout")
    target = float(re.findall(r"CoDel with a target of (\d+) ms and this interval", handout)[0])
    short = float(re.findall(r"CoDel's usual (\d+) ms", handout)[0])
    low, high = map(float, re.findall(r"usually 5 ms, (\d+) to (\d+) % of the interval", handout)[0])
    assert low <= 100 * target / 600 <= high
    assert "`codel-100ms`, whose target is half of its interval" in handout
    assert target / short == 0.5
    assert (
        f"codel_target: {target:.0f} ms, codel_interval: {short:.0f} ms"
        in (both(BLOAT)[0].folder / "uplink.yaml").read_text()
    )


@pytest.mark.parametrize("name", [NOISE, BLOAT, ACKS, PAPERS, SPACE])
def test_a_handout_counts_the_cells_that_run(name, tmp_path):
    assignment, _ = both(name)
    drawn = read_practice(assignment).variant.parameters
    cells = sum(len(run_of(assignment, drawn, one, tmp_path).cells) for one in assignment.scenario_names)
    assert re.findall(r"assignment run` runs (?:the )?(\d+) cells", text(name, "handout")) == [str(cells)]


EXPECTED = re.compile(r"Your numbers differ: ``` .*? │ (.*?) ```")
SHOWN = {
    DEEP: answer("tcp_goodput"),
    FIRST: answer("rtt"),
    NOISE: lambda expected: expected.answers["reno_measured"].value * 1e3,
    BLOAT: answer("echo_max"),
    OWN: lambda expected: expected.answers["one_measured"].value * 1e3,
}


@pytest.mark.parametrize("name", SHOWN)
def test_the_lines_that_a_handout_shows_are_those_of_the_practice_variant(name):
    """Within 2 %: a new kernel draws other ports and sequence numbers, and with them other times."""
    shown = [said(one) for one in re.findall(r"[\d,]*\d(?:\.\d+)?", EXPECTED.findall(text(name, "handout"))[0])]
    value = SHOWN[name](read_practice(both(name)[0]).expected)
    assert any(one == pytest.approx(value, rel=0.02) for one in shown), (value, shown)
