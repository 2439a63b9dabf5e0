"""Statistics against published numbers. Effects of pairs and groups, against SciPy and worked examples."""

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from scpslab.analysis import effects as ranks
from scpslab.analysis.effects import NO_EFFECT, Method, completion_p, effect, needed
from scpslab.analysis.statistics import (
    ResultRow,
    clopper_pearson,
    difference_p,
    fisher_exact,
    group_rows,
    holm,
    mean_of,
    ratio_of,
    ratio_of_pairs,
    spread_of,
    sum_of,
    t_quantile,
)


def test_mean_and_interval_of_a_worked_example():
    # Values 1…5: mean 3, sd sqrt(2.5) = 1.58114, half width 2.776445 * 1.58114 / sqrt(5) = 1.96324.
    mean = mean_of([1, 2, 3, 4, 5])
    assert mean.mean == 3
    assert mean.sd == pytest.approx(1.5811388)
    assert mean.ci95_half == pytest.approx(1.9632432)


def test_few_or_equal_values_claim_no_more_than_they_know():
    assert mean_of([]).mean is None
    assert mean_of([7.0]).sd is None
    assert mean_of([7.0]).ci95_half is None
    equal = mean_of([0.1] * 7)
    assert (equal.mean, equal.sd, equal.ci95_half) == (0.1, 0.0, 0.0)


@pytest.mark.parametrize("degrees_of_freedom", [1, 1.01, 2, 4.7, 9, 29.3, 1e4])
def test_t_is_that_of_another_library(degrees_of_freedom):
    assert t_quantile(degrees_of_freedom) == pytest.approx(special.stdtrit(degrees_of_freedom, 0.975), rel=1e-13)


# With mpmath alone 4000 trials take a minute, and 100,000 take hours.
@pytest.mark.parametrize("trials", [1, 2, 7, 10, 60, 199, 201, 1000, 4000, 100_000])
def test_completion_intervals_are_those_of_another_library(trials):
    for successes in range(0, trials + 1, max(1, trials // 7)):
        low, high = stats.binomtest(successes, trials).proportion_ci(0.95, method="exact")
        assert clopper_pearson(successes, trials) == (pytest.approx(low, rel=1e-10), pytest.approx(high, rel=1e-10))
    assert clopper_pearson(0, 0) == (0, 1)


def test_fishers_exact_test_is_that_of_another_library():
    for first in range(11):
        for second in range(8):
            expected = stats.fisher_exact([[first, 10 - first], [second, 7 - second]]).pvalue
            assert fisher_exact((first, 10), (second, 7)) == pytest.approx(expected, rel=1e-10)
    # The largest count that a paper may state; it took minutes.
    expected = stats.fisher_exact([[30, 10], [50_000, 50_000]]).pvalue
    assert fisher_exact((30, 40), (50_000, 100_000)) == pytest.approx(expected, rel=1e-6)


def test_the_spread_has_the_chi_square_interval():
    values = [19.0, 20.0, 21.5, 18.0]
    found = spread_of(values)
    ends = [(3 / special.chdtri(3, tail)) ** 0.5 for tail in (0.025, 0.975)]
    assert (found.low / found.number, found.high / found.number) == pytest.approx(ends, rel=1e-12)


def test_impossible_counts_are_refused():
    with pytest.raises(ValueError, match="11 successes in 10"):
        clopper_pearson(11, 10)


def test_only_completed_rows_enter_a_mean_and_the_others_are_counted():
    rows = [
        {"ber": "0", "status": "completed", "m": "1"},
        {"ber": "0", "status": "incomplete", "m": ""},
        {"ber": "0", "status": "failed", "m": "99"},
        {"ber": "0", "status": "completed", "m": "3"},
        {"ber": "1e-5", "status": "completed", "m": "nan"},
    ]
    clean, hit = group_rows([ResultRow(row) for row in rows], ["ber"], ["m"])
    assert (clean.completed, clean.incomplete, clean.failed) == (2, 1, 1)
    assert (clean.means["m"].n, clean.means["m"].mean) == (2, 2.0)
    assert clean.completion == clopper_pearson(2, 3)
    assert hit.means["m"].n == 0


def test_holm_corrects_as_published():
    # Holm 1979 with p 0.01, 0.04, 0.03, 0.005: times 4, 3, 2, 1 in rising order, never below the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.7, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []


def test_a_difference_of_two_means_has_welchs_interval():
    first, second = [27.5, 21.0, 19.0, 23.6, 17.0], [27.1, 22.0, 20.8, 23.4, 23.4, 23.5]
    found = sum_of([mean_of(first)], [mean_of(second)])
    expected = stats.ttest_ind(first, second, equal_var=False)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval()))
    assert difference_p(mean_of(first), mean_of(second)) == pytest.approx(expected.pvalue)


@pytest.mark.slow
def test_the_interval_of_a_ratio_covers_the_true_one_95_times_of_100():
    import numpy as np

    draws = np.random.default_rng(7)
    covered = 0
    for _ in range(2000):
        over, under = draws.normal(40, 4, 5), draws.normal(20, 1, 5)
        found = ratio_of([mean_of(over.tolist())], [mean_of(under.tolist())])
        covered += found.low <= 2 <= found.high
    # Two standard errors of a share of 95 % in 2000 trials are one percent; half a percent is the delta method's own.
    assert covered / 2000 == pytest.approx(0.95, abs=0.015)


def test_combinations_claim_no_more_than_they_know():
    one, none = mean_of([3.0]), mean_of([])
    assert ratio_of([one], [mean_of([2.0, 2.0])]).low is None
    assert ratio_of([mean_of([0.0, 0.0])], [one]) is None
    assert sum_of([one], [none]) is None
    assert spread_of([3.0]) is None
    assert difference_p(mean_of([1.0]), mean_of([2.0, 3.0])) is None
    assert difference_p(mean_of([1.0, 1.0]), mean_of([2.0, 2.0])) == 0
    assert difference_p(mean_of([2.0, 2.0]), mean_of([2.0, 2.0])) == 1


VALUES = st.lists(st.floats(0.1, 1000).map(lambda value: round(value, 3)), min_size=2, max_size=8)
FEW = st.lists(st.integers(0, 5).map(float), min_size=1, max_size=5)
PAIRS = st.integers(2, 8).flatmap(
    lambda n: st.tuples(*(st.lists(st.integers(1, 50).map(float), min_size=n, max_size=n),) * 2)
)


@pytest.mark.parametrize("pairs", [1, 2, 5, 9, 20, 60])
def test_signed_ranks_are_those_of_another_library(pairs):
    differences = np.random.default_rng(pairs).normal(0.4, 1, pairs)
    expected = stats.wilcoxon(differences, method="exact").pvalue
    assert ranks.signed_rank_p(differences) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("first", "second"), [(1, 1), (3, 4), (5, 5), (10, 7), (40, 30)])
def test_rank_sums_are_those_of_another_library(first, second):
    draws = np.random.default_rng(first)
    a, b = draws.normal(size=first), draws.normal(0.3, 1, second)
    assert ranks.rank_sum_p(a, b) == pytest.approx(stats.mannwhitneyu(a, b, method="exact").pvalue, rel=1e-9)


def share_of_tails(everything, mine):
    """Two-sided, of all ways to draw."""
    return min(1, 2 * min(sum(v <= mine for v in everything), sum(v >= mine for v in everything)) / len(everything))


@settings(deadline=None)
@given(st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=9))
def test_signed_ranks_with_ties_are_the_share_of_all_signs(differences):
    kept = [value for value in differences if value]
    shared = stats.rankdata([abs(value) for value in kept])

    def sums(signs):
        return sum(rank for rank, sign in zip(shared, signs, strict=True) if sign > 0)

    everything = [sums(signs) for signs in itertools.product((1, -1), repeat=len(kept))]
    mine = sums([math.copysign(1, value) for value in kept])
    assert ranks.signed_rank_p(differences) == pytest.approx(share_of_tails(everything, mine))


@settings(deadline=None)
@given(FEW, FEW)
def test_rank_sums_with_ties_are_the_share_of_all_divisions(first, second):
    shared = stats.rankdata([*first, *second])
    places = itertools.combinations(range(len(shared)), len(second))
    everything = [sum(shared[place] for place in chosen) for chosen in places]
    mine = sum(shared[len(first) :])
    assert ranks.rank_sum_p(first, second) == pytest.approx(share_of_tails(everything, mine))


def test_many_values_take_the_normal_distribution():
    draws = np.random.default_rng(3)
    differences, a, b = draws.normal(0.1, 1, 250), draws.normal(size=80), draws.normal(0.3, 1, 70)
    assert ranks.signed_rank_p(differences) == pytest.approx(
        stats.wilcoxon(differences, method="asymptotic").pvalue, rel=1e-9
    )
    expected = stats.mannwhitneyu(a, b, method="asymptotic", use_continuity=False).pvalue
    assert ranks.rank_sum_p(a, b) == pytest.approx(expected, rel=1e-9)
    of_groups = ranks.shift_of_groups(a, b), np.median(b) - np.median(a)
    for shift, center in ((ranks.shift_of_pairs(differences), np.median(differences)), of_groups):
        assert shift.low < shift.number < shift.high
        assert shift.number == pytest.approx(center, abs=0.2)


@pytest.mark.parametrize(("pairs", "critical"), [(5, None), (6, 0), (8, 3), (10, 8), (20, 52)])
def test_intervals_of_pairs_end_at_the_tables_critical_values(pairs, critical):
    """Wilcoxon's table, 5 % two-sided: a sum of ranks up to `critical` is significant; the interval leaves out as many
    means on each side.
    """
    differences = [float(2**number) for number in range(pairs)]
    means = sorted((a + b) / 2 for a, b in itertools.combinations_with_replacement(differences, 2))
    shift = ranks.shift_of_pairs(differences)
    assert (shift.low, shift.high) == ((None, None) if critical is None else (means[critical], means[-1 - critical]))


@pytest.mark.parametrize(("first", "second", "critical"), [(3, 3, None), (4, 4, 0), (5, 5, 2), (8, 6, 8), (10, 10, 23)])
def test_intervals_of_groups_end_at_the_tables_critical_values(first, second, critical):
    """Mann and Whitney's table of U, 5 % two-sided."""
    a, b = [float(2**number) for number in range(first)], [float(3**number) for number in range(second)]
    differences = sorted(y - x for x in a for y in b)
    shift = ranks.shift_of_groups(a, b)
    assert (shift.low, shift.high) == (
        (None, None) if critical is None else (differences[critical], differences[-1 - critical])
    )


@settings(deadline=None)
@given(PAIRS)
def test_pairs_by_means_are_students(pairs):
    first, second = pairs
    found = effect(first, second, Method.MEANS, paired=True)
    if len({b - a for a, b in zip(first, second, strict=True)}) == 1:
        # Without spread: the share of all signs, or 1 where nothing differs.
        assert found.p == (1 if first == second else 2.0 ** (1 - len(first)))
        return
    expected = stats.ttest_rel(second, first)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9, abs=1e-12)
    interval = expected.confidence_interval()
    assert (found.difference.low, found.difference.high) == pytest.approx((interval.low, interval.high), abs=1e-9)


# A quantile of a new number of degrees takes some ten milliseconds.
@settings(deadline=None, max_examples=25)
@given(VALUES, VALUES)
def test_groups_by_means_are_welchs(first, second):
    found = effect(first, second, Method.MEANS, paired=False)
    if len(set(first)) == 1 or len(set(second)) == 1:
        return
    assert found.p == pytest.approx(stats.ttest_ind(second, first, equal_var=False).pvalue, rel=1e-8, abs=1e-12)


def test_values_without_spread_differ_for_a_reason_only_if_nothing_was_drawn():
    """Two groups of three equal values: one of 20 divisions each way has them apart."""
    assert effect([1.0] * 3, [2.0] * 3, Method.MEANS, paired=False).p == pytest.approx(0.1)
    assert effect([1.0] * 3, [1.0] * 3, Method.MEANS, paired=False).p == 1


def test_the_rounding_of_floats_is_no_spread():
    """0.3 - 0.2, 0.4 - 0.3 and 0.5 - 0.4 are three floats, and one difference."""
    found = effect([0.2, 0.3, 0.4], [0.3, 0.4, 0.5], Method.MEANS, paired=True)
    assert (found.p, found.difference.number) == (0.25, pytest.approx(0.1))
    assert effect([0.3], [0.1 + 0.2], Method.RANKS, paired=True).p == 1


def test_too_few_values_have_no_p():
    assert effect([], [1.0], Method.MEANS, paired=False) is NO_EFFECT
    assert effect([1.0], [2.0], Method.MEANS, paired=True).p is None
    assert effect([1.0], [2.0, 3.0], Method.MEANS, paired=False).p is None
    assert effect([1.0], [2.0], Method.MEANS, paired=True).difference.number == 1


@pytest.mark.parametrize(("paired", "least"), [(True, 2 / 16), (False, 2 / 70)])
def test_least_p_is_reached_by_values_that_do_not_overlap(paired, least):
    found = effect([1.0, 2.0, 3.0, 4.0], [11.5, 13.0, 15.0, 18.0], Method.RANKS, paired=paired)
    assert found.p == pytest.approx(found.least_p) == pytest.approx(least)


def test_ratios_of_ranks_are_of_the_values():
    powers = [2.0**power for power in range(7)]
    ratio = effect(powers[:-1], powers[1:], Method.RANKS, paired=True).ratio
    assert (ratio.number, ratio.low, ratio.high) == pytest.approx((2, 2, 2))
    assert effect([0.0, 1.0], [1.0, 2.0], Method.RANKS, paired=True).ratio is None


def test_the_interval_of_a_ratio_of_pairs_covers_it():
    """Pairs whose second is 1.5 times the first, with noise: 95 % of 400 intervals, within the binomial's 99.9 %."""
    draws = random.Random(3)
    covered = 0
    for _ in range(400):
        first = [draws.uniform(50, 150) for _ in range(8)]
        found = ratio_of_pairs(first, [1.5 * value + draws.gauss(0, 5) for value in first])
        covered += found.low <= 1.5 <= found.high
    assert stats.binom.ppf(0.001, 400, 0.95) <= covered <= stats.binom.ppf(0.999, 400, 0.95)


@pytest.mark.parametrize(("only_first", "only_second"), [(0, 0), (1, 0), (0, 6), (3, 8), (5, 5)])
def test_completion_of_pairs_is_mcnemars(only_first, only_second):
    first = [True] * only_first + [False] * only_second + [True, False]
    second = [False] * only_first + [True] * only_second + [True, False]
    differ = only_first + only_second
    expected = stats.binomtest(only_first, differ).pvalue if differ else 1
    assert completion_p(first, second, paired=True) == (pytest.approx(expected), min(1, 2.0 ** (1 - len(first))))


def test_completion_of_groups_is_fishers():
    p, least = completion_p([True] * 2 + [False] * 6, [True] * 8, paired=False)
    assert p == pytest.approx(stats.fisher_exact([[2, 6], [8, 0]]).pvalue)
    assert least == pytest.approx(stats.fisher_exact([[0, 8], [8, 0]]).pvalue)
    assert completion_p([], [True], paired=False) == (None, None)


def test_the_needed_number_of_values():
    """2 / 2^n below 0.05: n = 6. Below 0.005: n = 9. 2 / C(2n, n) below 0.05: n = 4 (2 / 70)."""
    assert needed(ranks.least_signed_rank_p, 0.05) == 6
    assert needed(ranks.least_signed_rank_p, 0.005) == 9
    assert needed(lambda n: ranks.least_rank_sum_p(n, n), 0.05) == 4
