"""Verdicts: each kind of check on rows whose answer is known."""

import math

import pytest

from scpslab.analysis.claims import Outcome
from scpslab.analysis.claims.scoreboard import by_paper, decided, scores

MEAN = "kind: value, metric: transfer_s, of: {series: SERIES, at: {ber: 0}}, at_least: 20, at_most: 22, because: Why."
VALUE, OTHER = MEAN.replace("SERIES", "tcp"), MEAN.replace("SERIES", "tp")
FORESEEN = f"{VALUE}, different: {{at_least: 17, at_most: 19, because: The window of today.}}"
CLEAN, HIT = {"ber": "0"}, {"ber": "1e-05"}


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ([21.0, 21.2, 20.8], Outcome.REPRODUCED),
        ([30.0, 30.1, 30.2], Outcome.NOT_REPRODUCED),
        # 23 is outside, but its interval of [20.5, 25.5] reaches into the band.
        ([22.0, 23.0, 24.0], Outcome.UNDECIDED),
        ([18.0, 18.1, 18.2], Outcome.DIFFERENT),
        # Of one nobody knows how far its interval would reach; two that are alike have one without width.
        ([50], Outcome.UNDECIDED),
        ([50, 50], Outcome.NOT_REPRODUCED),
        ([], Outcome.NO_DATA),
        ([None, None], Outcome.NO_DATA),
    ],
)
def test_a_mean_is_judged_by_its_band(rows, verdict, values, outcome):
    assert verdict(rows("reno", CLEAN, values), FORESEEN).outcome() is outcome


def test_the_number_comes_with_its_interval_and_the_count(rows, verdict):
    """Of 20, 21, 22 the half width is 4.303 * 1 / sqrt(3) = 2.484."""
    found = verdict(rows("reno", CLEAN, [20, 21, 22]), VALUE).results[0].deciding

    assert found.number == pytest.approx(21)
    assert (found.low, found.high) == (pytest.approx(21 - 2.484, abs=1e-3), pytest.approx(21 + 2.484, abs=1e-3))
    assert found.text == "21 [18.52, 23.48], n = 3"


def test_only_cells_of_the_series_and_the_columns_count(rows, verdict):
    """Another error rate, stack, scenario, or the small variant for tests say nothing about the claim."""
    others = [
        *rows("reno", {"ber": "1e-06"}, [99, 99]),
        *rows("scps", CLEAN, [99, 99]),
        *rows("reno", CLEAN, [99, 99], scenario="net/other"),
        *rows("reno", CLEAN, [99, 99], scenario="net/links:test"),
    ]

    assert verdict(others, VALUE).outcome() is Outcome.NO_DATA
    counting = rows("reno", {"ber": "0.0"}, [21, 21], scenario="net/links:demo")
    assert verdict([*others, *counting], VALUE).outcome() is Outcome.REPRODUCED


def test_a_cell_in_two_runs_counts_once_and_the_newer_run_wins(rows, verdict):
    """The demo's two repeats are the first two of the whole scenario: five values, not seven."""
    newer = rows("reno", CLEAN, [21, 21], scenario="net/links:demo", run="new")
    older = rows("reno", CLEAN, [50, 50, 21, 21, 21], run="old")

    found = verdict([*newer, *older], VALUE).results[0].deciding
    assert found.text == "21 [21, 21], n = 5"


def test_a_ratio_of_ratios_has_the_interval_of_its_logarithm(rows, verdict):
    """(40/20) / (22/20) with a relative spread of a few percent each."""
    over = "[{series: tcp, at: {ber: 1e-5}}, {series: tp, at: {ber: 0}}]"
    under = "[{series: tcp, at: {ber: 0}}, {series: tp, at: {ber: 1e-5}}]"
    check = f"kind: ratio, metric: transfer_s, of: {over}, to: {under}, at_least: 1.5, because: Why."
    cells = [
        *rows("reno", HIT, [39, 40, 41]),
        *rows("reno", CLEAN, [20, 20, 20]),
        *rows("scps", HIT, [22, 22, 22]),
        *rows("scps", CLEAN, [20, 20, 20]),
    ]

    found = verdict(cells, check).results[0].deciding
    half = 4.302653 * (1 / math.sqrt(3)) / 40
    assert found.outcome is Outcome.REPRODUCED
    assert found.number == pytest.approx(2 / 1.1)
    assert found.low == pytest.approx(found.number * math.exp(-half), rel=1e-6)
    assert found.high == pytest.approx(found.number * math.exp(half), rel=1e-6)


ORDER = "kind: order, metric: transfer_s, every: {ber: [0, 1e-5]}, rising: [tp, tcp]"


@pytest.mark.parametrize(
    ("tcp", "outcome"),
    [
        ([30, 31, 32], Outcome.REPRODUCED),
        ([10, 11, 12], Outcome.NOT_REPRODUCED),
        ([20, 22, 24], Outcome.UNDECIDED),
        # One repeat has no spread to judge by.
        ([30], Outcome.UNDECIDED),
    ],
)
def test_an_order_needs_a_difference_that_the_spread_does_not_explain(rows, verdict, tcp, outcome):
    cells = [*rows("scps", CLEAN, [20, 21, 22]), *rows("reno", CLEAN, [30, 31, 32])]
    cells += [*rows("scps", HIT, [20, 21, 22]), *rows("reno", HIT, tcp)]

    assert verdict(cells, ORDER).outcome() is outcome


def test_several_orders_at_once_are_corrected(rows, verdict):
    """A rise of 2.8 at standard deviations of 1 has t = 3.43 with 4 degrees of freedom, p = 0.027: certain alone, 0.053
    as one of two.
    """
    close = [*rows("scps", CLEAN, [20, 21, 22]), *rows("reno", CLEAN, [22.8, 23.8, 24.8])]
    single = ORDER.replace("[0, 1e-5]", "[0]")
    twin = [*close, *rows("scps", HIT, [20, 21, 22]), *rows("reno", HIT, [22.8, 23.8, 24.8])]

    assert verdict(close, single).outcome() is Outcome.REPRODUCED
    assert verdict(twin, ORDER).outcome() is Outcome.UNDECIDED


TREND = "kind: trend, metric: transfer_s, of: tcp, along: ber, direction: rising"


@pytest.mark.parametrize(
    ("middle", "last", "outcome"),
    [
        ([21, 22, 23], [40, 41, 42], Outcome.REPRODUCED),
        # A step back that the spread explains does no harm, one that it does not explain does.
        ([19, 20, 21], [40, 41, 42], Outcome.REPRODUCED),
        ([60, 61, 62], [40, 41, 42], Outcome.NOT_REPRODUCED),
        ([20, 21, 22], [20, 21, 22], Outcome.UNDECIDED),
    ],
)
def test_a_trend_is_judged_by_its_ends_and_every_step_back(rows, verdict, middle, last, outcome):
    cells = [*rows("reno", HIT, last), *rows("reno", CLEAN, [20, 21, 22]), *rows("reno", {"ber": "1e-06"}, middle)]

    assert verdict(cells, TREND).outcome() is outcome


COMPLETION = "kind: completion, of: tcp, paper_count: [2, 10], at_least: 10, at_most: 30, because: Why."


@pytest.mark.parametrize(
    ("completed", "outcome"),
    [
        (20, Outcome.REPRODUCED),  # the paper's own share
        (45, Outcome.REPRODUCED),  # outside the band; Fisher's test beside 2 of 10 has p = 0.18
        (90, Outcome.NOT_REPRODUCED),
    ],
)
def test_completion_is_compared_with_the_papers_count(rows, verdict, completed, outcome):
    cells = rows("reno", CLEAN, [1.0] * completed + [None] * (100 - completed))

    judged = verdict(cells, COMPLETION)
    assert judged.outcome() is outcome
    assert judged.results[0].deciding.text.startswith(f"{completed} of 100 completed")


CROSSOVER = "kind: crossover, metric: transfer_s, along: rate, of: tcp, to: tp, ratio: 2, at_least: 10000"
CROSSOVER += ", at_most: 400000, because: Why."


@pytest.mark.parametrize(
    ("ratios", "outcome", "at"),
    [
        ([1, 1, 4], Outcome.REPRODUCED, 100_000 * 10**0.5),
        ([1, 2.5, 4], Outcome.REPRODUCED, None),
        ([3, 3, 4], Outcome.NOT_REPRODUCED, 0),
        ([1, 1, 1], Outcome.NOT_REPRODUCED, math.inf),
    ],
)
def test_a_crossover_is_found_between_points(rows, verdict, ratios, outcome, at):
    """On a logarithmic axis a ratio of 1 at 100 kbit/s and 4 at 1 Mbit/s is 2 half way."""
    cells = []
    for rate, ratio in zip(("10 kbit/s", "100 kbit/s", "1 Mbit/s"), ratios, strict=True):
        cells += [*rows("reno", {"rate": rate}, [ratio, ratio]), *rows("scps", {"rate": rate}, [1, 1])]

    judged = verdict(cells, CROSSOVER)
    assert judged.outcome() is outcome
    if at is not None:
        assert judged.results[0].deciding.number == pytest.approx(at)


SPREAD = "kind: spread, metric: transfer_s, of: tcp, at_most: 0.4, because: Why."


@pytest.mark.parametrize(
    ("values", "number", "says"),
    [([19, 20, 21], 0.05, ""), ([19], None, "found one repeat"), ([0, 0], None, "found a mean of 0 of transfer_s")],
)
def test_a_spread_is_a_coefficient_of_variation_or_says_why_it_is_none(rows, verdict, values, number, says):
    judged = verdict(rows("reno", {}, values), SPREAD)
    found = judged.results[0].deciding
    assert found.text.startswith(says)
    if number:
        assert judged.outcome() is Outcome.REPRODUCED
        assert found.number == pytest.approx(number)


def test_a_claim_that_cannot_be_tested_says_why(verdict):
    judged = verdict([])

    assert judged.outcome() is Outcome.NOT_TESTABLE
    assert "A hope." in by_paper([judged]).csv


def test_the_eras_are_judged_apart(rows, verdict):
    """Period settings decide; what today's say stands beside it."""
    cells = [*rows("reno", CLEAN, [21, 21]), *rows("scps", CLEAN, [30, 30])]
    judged = verdict(cells, VALUE, f"era: modern, {OTHER}")
    assert (judged.outcome(), judged.outcome("period"), judged.outcome("modern")) == (
        Outcome.REPRODUCED,
        Outcome.REPRODUCED,
        Outcome.NOT_REPRODUCED,
    )


def test_a_claim_with_one_check_short_of_data_is_not_decided_unless_another_fails(rows, verdict):
    assert verdict(rows("reno", CLEAN, [21, 21]), VALUE, OTHER).outcome() is Outcome.NO_DATA
    assert verdict(rows("reno", CLEAN, [90, 90]), VALUE, OTHER).outcome() is Outcome.NOT_REPRODUCED


def test_incomplete_transfers_are_counted_and_never_averaged_in(rows, verdict):
    found = verdict(rows("reno", CLEAN, [21, None, 21]), VALUE).results[0].deciding

    assert found.text == "21 [21, 21], n = 2; 1 did not complete"


def test_the_scoreboard_counts_every_claim_once(rows, verdict):
    judged = [verdict(rows("reno", CLEAN, [21, 21]), VALUE), verdict([], VALUE)]

    assert decided(judged) == 1
    assert scores(judged) == [("A paper", {Outcome.REPRODUCED: 1, Outcome.NO_DATA: 1}, {})]
    assert len(by_paper(judged).rows) == 1
    assert '"outcome": "no data yet"' in by_paper(judged).json


ONE_SIDED = "kind: ratio, metric: transfer_s, of: tcp, to: tp, at_least: 3, because: Three times."


@pytest.mark.parametrize(
    ("tcp", "outcome"),
    [
        ([100, 101, 102], Outcome.REPRODUCED),
        # 80 over 21 is 3.8, but with an interval of 1.4 to 10.7: more than three times is not certain.
        ([50, 80, 110], Outcome.UNDECIDED),
        # One repeat has no interval.
        ([100], Outcome.UNDECIDED),
        ([40, 41, 42], Outcome.NOT_REPRODUCED),
    ],
)
def test_a_bound_with_one_side_has_to_hold_with_its_interval(rows, verdict, tcp, outcome):
    assert verdict([*rows("scps", {}, [20, 21, 22]), *rows("reno", {}, tcp)], ONE_SIDED).outcome() is outcome


@pytest.mark.parametrize(("last", "outcome"), [(1.0, Outcome.REPRODUCED), (None, Outcome.NOT_REPRODUCED)])
def test_completion_is_judged_by_its_count(rows, verdict, last, outcome):
    """Ten of ten have an exact interval from 69 percent on, and are all of them."""
    check = "kind: completion, of: tcp, at_least: 100, because: It works or it does not."

    assert verdict(rows("reno", {}, [*[1.0] * 9, last]), check).outcome() is outcome


def test_a_crossover_that_may_lie_beyond_the_points_has_an_open_interval(rows, verdict):
    """The ratio stays below 2 on average; the upper end of its interval passes 2 between the two points."""
    cells = []
    for rate, values in (("10 kbit/s", [1.0, 1.0, 1.0]), ("100 kbit/s", [1.6, 1.8, 2.0])):
        cells += [*rows("reno", {"rate": rate}, values), *rows("scps", {"rate": rate}, [1, 1, 1])]

    found = verdict(cells, CROSSOVER).results[0].deciding
    assert (found.number, found.high) == (math.inf, math.inf)
    assert 10_000 < found.low < 100_000
    assert found.outcome is Outcome.UNDECIDED


def curve(rows, *values):
    """Cells whose ratio is one of these at the first and the last rate; its spread is that of the values."""
    found = []
    for rate, repeats in zip(("10 kbit/s", "100 kbit/s"), values, strict=True):
        found += [*rows("reno", {"rate": rate}, repeats), *rows("scps", {"rate": rate}, [1] * len(repeats))]
    return found


# With an interval that reaches from below 2 to above 2.
BELOW, ABOVE = [1.5, 1.8, 2.1], [1.9, 2.2, 2.5]


@pytest.mark.parametrize(
    ("values", "band", "interval", "outcome"),
    [
        ([BELOW, BELOW], "at_least: 20", (0, math.inf), Outcome.UNDECIDED),
        ([ABOVE, ABOVE], "at_most: 0.5", (0, math.inf), Outcome.UNDECIDED),
        ([[1, 1, 1], [1, 1, 1]], "at_least: 20", (math.inf, math.inf), Outcome.REPRODUCED),
        ([[3, 3, 3], [3, 3, 3]], "at_most: 0.5", (0, 0), Outcome.REPRODUCED),
        ([BELOW, [4, 4, 4]], "at_most: 90000", (0, "between"), Outcome.REPRODUCED),
        ([[1, 1, 1], ABOVE], "at_most: 100000", ("between", math.inf), Outcome.UNDECIDED),
        ([[1, 1, 1], ABOVE], "at_least: 20000", ("between", math.inf), Outcome.REPRODUCED),
        # A curve that falls below the threshold ends there, wherever it was before.
        ([[4, 4, 4], [1, 1, 1]], "at_least: 20", (math.inf, math.inf), Outcome.REPRODUCED),
        ([[4, 4, 4], BELOW], "at_least: 20", (0, math.inf), Outcome.UNDECIDED),
        # One repeat has no interval.
        ([[1], [1]], "at_least: 20", (None, None), Outcome.UNDECIDED),
        ([[3], [3]], "at_most: 0.5", (None, None), Outcome.UNDECIDED),
        ([[3], [3, 3]], "at_most: 0.5", (None, None), Outcome.UNDECIDED),
    ],
)
def test_the_interval_of_a_crossover_is_that_of_the_curves_at_the_ends_of_the_ratio(
    rows, verdict, values, band, interval, outcome
):
    check = f"kind: crossover, metric: transfer_s, along: rate, of: tcp, to: tp, ratio: 2, {band}, because: Why."
    found = verdict(curve(rows, *values), check).results[0].deciding
    ends = [("between" if end and 10_000 < end < 100_000 else end) for end in (found.low, found.high)]
    assert (tuple(ends), found.outcome) == (interval, outcome)


@pytest.mark.parametrize(
    ("ended", "outcome"),
    [
        ([None], Outcome.UNDECIDED),  # 0 of 1 beside 8 of 10: p = 0.27, and no other end would tell more
        ([None, 1.0], Outcome.UNDECIDED),
        ([None, None], Outcome.UNDECIDED),
        ([None] * 5, Outcome.NOT_REPRODUCED),
        ([1.0, 1.0, 1.0], Outcome.REPRODUCED),
    ],
)
def test_completion_of_cells_that_could_not_refute_it_is_undecided(rows, verdict, ended, outcome):
    check = "kind: completion, of: tcp, paper_count: [8, 10], at_least: 60, at_most: 95, because: Why."

    assert verdict(rows("reno", CLEAN, ended), check).outcome() is outcome
