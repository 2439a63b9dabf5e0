"""Every physical number that a handout, the notes, a marking or a solution states, computed again from the formula.

The number is read from the text: a text that says another one, or says it in other words, fails here. What a text says
of every variant is computed for all that can be drawn; what a solution says, for the practice variant.
"""

import math
import re

import pytest

from scpslab_course.course.answers import Evaluation, _right_number, read_practice, score_answer
from scpslab_course.course.assignment import HANDOUT, names
from scpslab_course.course.runs import run_of
from tests import golden
from tests.unit.course.claims import (
    TEXTS,
    answer,
    both,
    drawable,
    echo_s,
    mistake,
    numbers,
    practice,
    rtt,
    said,
    slow_start_rounds,
    text,
)

FIRST, TRACE, NOISE, BLOAT = "first-steps", "read-a-trace", "corruption-or-congestion", "bufferbloat"
ACKS, PAPERS, OWN, SPACE = "ack-path", "three-papers", "write-your-own", "space-transport"
SPLIT, HANDOVER, DEEP, BUILD = "split-tcp", "hand-over", "deep-space", "build-a-transport"
# The text, a pattern with a group for each number, and a formula for each: a line that it has, or the ends of all lines
# that variants may have.
CLAIMS = [
    (name, *case.split(" | ", 1), formulas)
    for name, cases in golden.families(golden.FILE.with_name("numbers.txt")).items()
    for case, formulas in cases.items()
]


@pytest.mark.parametrize(("name", "which", "pattern", "formulas"), CLAIMS)
def test_a_number_in_a_text_is_the_one_of_the_formula(name, which, pattern, formulas):
    found = re.findall(pattern, text(name, which))
    assert len(found) == 1, f"found {len(found)} times"
    stated = (found[0],) if isinstance(found[0], str) else found[0]
    if formulas.startswith("between: "):
        (measured,) = numbers(name, formulas.removeprefix("between: "))
        assert said(stated[0]) <= measured <= said(stated[1])
        return
    for number, value in zip(stated, numbers(name, formulas), strict=True):
        decimals = len(number.partition(".")[2])
        assert abs(said(number) - value) <= 0.5 * 10**-decimals + 1e-9, f"says {number}; computed {value:g}"


def test_slow_start_of_first_steps_takes_the_round_trips_that_the_notes_say():
    words = {"three": 3, "four": 4, "five": 5}
    low, high = re.findall(r"slow start takes (\w+) to (\w+) round trips", text(FIRST, "notes"))[0]
    rounds = {slow_start_rounds(v) for v in drawable(FIRST)}
    assert (words[low], words[high]) == (min(rounds), max(rounds))


@pytest.mark.parametrize(
    ("name", "says", "size", "fewest", "most"),
    [
        (SPLIT, "needs three windows of slow start", "object", 3, 3),
        (DEEP, "Without the timers five rounds would do at most: 10, 20, 40, 80 and the rest", "size", 4, 5),
    ],
)
def test_slow_start_sends_a_file_in_the_rounds_that_the_notes_say(name, says, size, fewest, most):
    assert says in text(name, "notes")
    segments = [math.ceil(getattr(v, size) / 1400) for v in drawable(name)]
    rounds = {next(doubled for doubled in range(12) if 10 * (2**doubled - 1) >= one) for one in segments}
    assert (min(rounds), max(rounds)) == (fewest, most)


def test_the_outages_of_hand_over_end_when_the_marking_says():
    assert (
        "50 ms must be less than one way. Probe and timeout must come after the outages of 100 and 150 ms, and before the "
        "end of that of 400 ms."
    ) in text(HANDOVER, "marking")
    for v in drawable(HANDOVER):
        assert v.far_server > 0.05
        for timer in (2 * 2 * v.far_server, 2 * v.far_server + 0.2):
            assert 0.15 < timer < 0.4 - v.near_server


def test_the_gain_of_the_file_that_split_tcp_shows_is_that_of_the_practice_variant():
    shown = re.findall(r"│ geo │ (?:cubic|split) │ kernel cubic │ ([\d.]+) │", text(SPLIT, "handout"))
    cubic, split = map(float, shown)
    # Times have four digits.
    assert cubic / split == pytest.approx(
        mistake("noise_measured", 2)(read_practice(both(SPLIT)[0]).expected), rel=1e-3
    )


def test_a_third_round_of_the_carousel_is_as_likely_as_the_notes_say():
    """Some part is lost twice; loss is drawn evenly from its values."""
    values = [float(one.removesuffix(" %")) / 100 for one in both(BUILD)[0].file.variant["loss"].values]
    likely = sum(1 - (1 - loss**2) ** 62 for loss in values) / len(values)
    assert f"a third one, in {['', 'one', 'two', 'three', 'four'][round(5 * likely)]} variants of five" in text(
        BUILD, "notes"
    )


def test_the_points_of_each_program_are_the_sum_of_its_shares():
    rows = re.findall(
        r"^\| `(\w+)` \| (\d) \| (.*) \|$", (both(BUILD)[0].folder / TEXTS["notes"]).read_text(), re.MULTILINE
    )
    points = {
        name: trial.points for file in (both(BUILD)[0].file, both(BUILD)[1].file) for name, trial in file.trials.items()
    }
    assert {name: int(of) for name, of, _ in rows} == points
    shares = zip(*([float(one) for one in row.split(" | ")] for *_, row in rows), strict=True)
    sums = [sum(share * int(of) for share, (_, of, _) in zip(column, rows, strict=True)) for column in shares]
    told = re.findall(
        r"points of 26 \| \| (.*?) \|$", (both(BUILD)[0].folder / TEXTS["notes"]).read_text(), re.MULTILINE
    )[0]
    assert [float(one) for one in told.split(" | ")] == pytest.approx(sums, abs=0.05 + 1e-9)


@pytest.mark.parametrize("name", names())
def test_the_table_of_what_is_marked_has_all_points(name):
    file = both(name)[0].file
    table = (both(name)[0].folder / HANDOUT).read_text().partition("## What is marked\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (\d+) \|", table, re.MULTILINE)
    assert sum(int(points) for _, points in rows) == file.points
    for part, points in rows:
        answers = part.replace("`", "").split(", ")
        if set(answers) <= set(file.answers):
            assert sum(file.answers[one].points for one in answers) == int(points), part


def test_the_product_is_as_right_for_every_variant_as_the_marking_says():
    """With full packets' time, small ones', and twice the delay; with three digits, of times as `ping` shows them."""
    assignment, marking = both(FIRST)
    shares = set()
    for v in drawable(FIRST):
        times = {payload: round(1000 * echo_s(v, payload)) for payload in (1472, 56)}
        rows = [{"payload": f"{one} B", "rtt_mean_ms": str(ms), "status": "completed"} for one, ms in times.items()]
        evaluation = Evaluation(marking, vars(v), {"round-trip": rows})
        right = _right_number(evaluation, ("answers", "bdp"), marking.file.answers["bdp"])
        given = (f"{v.rate * ms / 8e6:.3g}" for ms in (times[1472], times[56], 1000 * rtt(v)))
        shares.add(tuple(score_answer(assignment.file.answers["bdp"], right, one).share for one in given))
    assert shares == {(1, 0.7, 0.7)}


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


@pytest.mark.parametrize("name", [NOISE, BLOAT, ACKS, PAPERS, SPACE, SPLIT, HANDOVER, DEEP])
def test_a_handout_counts_the_cells_that_run(name, tmp_path):
    assignment, _ = both(name)
    drawn = read_practice(assignment).variant.parameters
    cells = sum(len(run_of(assignment, drawn, one, tmp_path).cells) for one in assignment.file.scenarios)
    assert re.findall(r"assignment run` runs (?:the )?(\d+) cells", text(name, "handout")) == [str(cells)]
    assert set(re.findall(r"(\d+) cells", text(name, "notes"))) <= {str(cells)}


EXPECTED = re.compile(r"Your numbers differ(?:: |\. )``` (.*?) ```|``` ([^`]*[│|][^`]*) ``` Your numbers differ")
SHOWN = {
    FIRST: answer("rtt"),
    NOISE: lambda expected: expected.answers["reno_measured"].value * 1e3,
    BLOAT: answer("ecn_saves"),
    OWN: lambda expected: expected.answers["one_measured"].value * 1e3,
    DEEP: answer("tcp_goodput"),
    BUILD: lambda expected: expected.answers["carousel_measured"].value * 1e3,
    # At the rate, with the headers of each packet: slow start and round trips add less than a percent.
    HANDOVER: lambda _: 40e6 * 8 * 1452 / 1400 / practice(HANDOVER).rate,
}


@pytest.mark.parametrize("name", SHOWN)
def test_the_lines_that_a_handout_shows_are_those_of_the_practice_variant(name):
    """Within 2 %: a new kernel draws other ports and sequence numbers, and with them other times."""
    after, before = EXPECTED.findall(text(name, "handout"))[0]
    shown = [said(one) for one in re.findall(r"[\d,]*\d(?:\.\d+)?", after + before)]
    value = SHOWN[name](read_practice(both(name)[0]).expected)
    assert any(one == pytest.approx(value, rel=0.02) for one in shown), (value, shown)


# The sample of write-your-own is one packet for each round trip, which everybody can compute.
@pytest.mark.parametrize("name", [name for name in names() if name != OWN])
def test_no_line_that_a_handout_shows_has_a_number_that_is_to_be_predicted(name):
    lines = "".join(after + before for after, before in EXPECTED.findall(text(name, "handout")))
    shown = [said(one) for one in re.findall(r"[\d,]*\d(?:\.\d+)?", lines)]
    truths = [one for one in read_practice(both(name)[0]).expected.predictions.values() if isinstance(one, float)]
    near = [one for one in shown if one != 1 for truth in truths if one == pytest.approx(truth, rel=0.02)]
    assert near == []
