"""Statistics against published numbers."""

from __future__ import annotations

import pytest

from scpslab.results.statistics import clopper_pearson, group_rows, mean_of, t_quantile, welch


@pytest.mark.parametrize(("degrees_of_freedom", "quantile"), [(1, 12.706), (4, 2.776), (9, 2.262), (15, 2.131), (29, 2.045), (120, 1.980)])
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
    # 0 of 10: 1 - 0.025^(1/10) = 0.3085 (the exact form of the rule of three); 5 of 10 and 1 of 10 as in the usual tables.
    [(0, 10, 0.0, 0.3085), (10, 10, 0.6915, 1.0), (5, 10, 0.1871, 0.8129), (1, 10, 0.0025, 0.4450), (0, 0, 0.0, 1.0)],
)
def test_completion_intervals_are_exact(successes, trials, low, high):
    assert clopper_pearson(successes, trials) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_impossible_counts_are_refused():
    with pytest.raises(ValueError, match="11 successes in 10"):
        clopper_pearson(11, 10)


def test_welch_on_a_worked_example():
    # Variances 2.5 and 10, five values each: t = -3 / sqrt(0.5 + 2), degrees = 2.5^2 / (0.5^2/4 + 2^2/4) = 5.8824; p as t.test of R prints it.
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
