"""Statistics against published numbers."""

import pytest
from scipy import special, stats

from scpslab.analysis.statistics import (
    ResultRow,
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
    assert difference_p(first, second) == pytest.approx(expected.pvalue)


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
