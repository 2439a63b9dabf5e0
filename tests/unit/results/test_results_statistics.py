"""Statistics against published numbers."""

from __future__ import annotations

import pytest
from scipy import special, stats

from scpslab.analysis.statistics import (
    clopper_pearson,
    difference_p,
    fisher_exact,
    group_rows,
    holm,
    mean_of,
    ratio_of,
    spread_of,
    sum_of,
    t_quantile,
    welch,
)


@pytest.mark.parametrize(
    ("degrees_of_freedom", "quantile"), [(1, 12.706), (4, 2.776), (9, 2.262), (15, 2.131), (29, 2.045), (120, 1.980)]
)
def test_t_quantiles_are_those_of_the_tables(degrees_of_freedom, quantile):
    assert t_quantile(degrees_of_freedom) == pytest.approx(quantile, abs=5e-4)


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


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    # 0 of 10: 1 - 0.025^(1/10) = 0.3085 (the exact form of the rule of three); 5 of 10 and 1 of 10 as in the usual
    # tables.
    [(0, 10, 0.0, 0.3085), (10, 10, 0.6915, 1.0), (5, 10, 0.1871, 0.8129), (1, 10, 0.0025, 0.4450), (0, 0, 0.0, 1.0)],
)
def test_completion_intervals_are_exact(successes, trials, low, high):
    assert clopper_pearson(successes, trials) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


@pytest.mark.parametrize("degrees_of_freedom", [1, 1.01, 2, 4.7, 9, 29.3, 1e4])
def test_t_is_that_of_another_library(degrees_of_freedom):
    assert t_quantile(degrees_of_freedom) == pytest.approx(special.stdtrit(degrees_of_freedom, 0.975), rel=1e-13)


@pytest.mark.parametrize("trials", [1, 2, 7, 60])
def test_completion_intervals_are_those_of_another_library(trials):
    for successes in range(0, trials + 1, max(1, trials // 7)):
        low, high = stats.binomtest(successes, trials).proportion_ci(0.95, method="exact")
        assert clopper_pearson(successes, trials) == (pytest.approx(low, rel=1e-10), pytest.approx(high, rel=1e-10))


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


def test_welch_on_a_worked_example():
    # Variances 2.5 and 10, five values each: t = -3 / sqrt(0.5 + 2), degrees = 2.5^2 / (0.5^2/4 + 2^2/4) = 5.8824; p as
    # t.test of R prints it.
    test = welch([1, 2, 3, 4, 5], [2, 4, 6, 8, 10])
    assert test.t == pytest.approx(-1.8973666)
    assert test.degrees_of_freedom == pytest.approx(5.8823529)
    assert test.p == pytest.approx(0.1075, abs=5e-5)
    assert test.difference == -3


def test_welch_equals_student_for_equal_spread_and_size():
    # sd 1 and n 3 on both sides: t = 2 / sqrt(2/3) = 2.449490, 4 degrees of freedom, p = 0.0705.
    test = welch([3, 4, 5], [1, 2, 3])
    assert test.t == pytest.approx(2.4494897)
    assert test.degrees_of_freedom == pytest.approx(4)
    assert test.p == pytest.approx(0.0705, abs=5e-5)
    assert test.ci95_half == pytest.approx(2.7764451 * (2 / 3) ** 0.5)


@pytest.mark.parametrize("values", [([1.0], [1.0, 2.0]), ([1.0, 1.0], [2.0, 2.0])])
def test_welch_refuses_what_has_no_spread(values):
    with pytest.raises(ValueError, match="expected"):
        welch(*values)


def test_only_completed_rows_enter_a_mean_and_the_others_are_counted():
    rows = [
        {"ber": "0", "status": "completed", "m": "1"},
        {"ber": "0", "status": "incomplete", "m": ""},
        {"ber": "0", "status": "failed", "m": "99"},
        {"ber": "0", "status": "completed", "m": "3"},
        {"ber": "1e-5", "status": "completed", "m": "nan"},
    ]
    clean, hit = group_rows(rows, ["ber"], ["m"])
    assert (clean.completed, clean.incomplete, clean.failed) == (2, 1, 1)
    assert (clean.means["m"].n, clean.means["m"].mean) == (2, 2.0)
    assert clean.completion == clopper_pearson(2, 3)
    assert hit.means["m"].n == 0


def test_holm_corrects_as_published():
    # Holm 1979 with p 0.01, 0.04, 0.03, 0.005: times 4, 3, 2, 1 in rising order, never below the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.7, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []


def test_fishers_exact_test_of_a_worked_example():
    # Fisher's tea: 3 of 4 against 1 of 4, p = 0.4857; ITC's 6 against 2 of 10, p = 0.17.
    assert fisher_exact((3, 4), (1, 4)) == pytest.approx(0.48571, abs=1e-5)
    assert fisher_exact((6, 10), (2, 10)) == pytest.approx(0.1698, abs=1e-4)


def test_a_difference_of_two_means_has_welchs_interval():
    first, second = [27.5, 21.0, 19.0, 23.6, 17.0], [27.1, 22.0, 20.8, 23.4, 23.4, 23.5]
    by_welch = welch(first, second)
    found = sum_of([mean_of(first)], [mean_of(second)])

    assert found is not None
    assert found.number == pytest.approx(by_welch.difference)
    assert found.low == pytest.approx(by_welch.difference - by_welch.ci95_half)
    assert found.high == pytest.approx(by_welch.difference + by_welch.ci95_half)


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
    assert difference_p([1.0], [2.0, 3.0]) is None
    assert difference_p([1.0, 1.0], [2.0, 2.0]) == 0
    assert difference_p([2.0, 2.0], [2.0, 2.0]) == 1


def test_the_interval_of_a_spread_is_that_of_the_chi_square_distribution():
    # n = 3, cv 0.05: factors sqrt(2 / 7.378) and sqrt(2 / 0.0506).
    found = spread_of([19.0, 20.0, 21.0])
    assert (found.number, found.low, found.high) == (
        pytest.approx(0.05),
        pytest.approx(0.02603, abs=1e-4),
        pytest.approx(0.31424, abs=1e-3),
    )
