"""Formulas: what they can say, and that they can do nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scpslab_course.course.formulas import FormulaError, parse
from tests import golden
from tests.cases import refusal

ROWS = {
    "t": [
        {"stack": "reno", "delay": "25 ms", "ber": "1e-06", "goodput_bps": "10", "status": "completed", "note": "x"},
        {"stack": "reno", "delay": "250 ms", "ber": "0", "goodput_bps": "30", "status": "completed", "note": "x"},
        {"stack": "cubic", "delay": "25 ms", "ber": "0", "goodput_bps": "50", "status": "completed", "note": "x"},
        {"stack": "cubic", "delay": "250 ms", "ber": "0", "goodput_bps": "", "status": "incomplete", "note": ""},
    ]
}
DRAWN = {"rate": "2 Mbit/s", "delay": "250 ms", "who": "reno"}


def value(source):
    return parse(source, DRAWN).value(DRAWN, ROWS)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("rate * 2 * delay / 8", 125_000.0),
        ("-(1 + 2) ** 2 % 5", 1.0),
        ("7 % 4 - 1", 2.0),
        ('"window" if rate > 1e6 and not delay > 1 else "rate"', "window"),
        (
            (
                "min(3, 1, 2) + max(1, 2) + abs(-1) + round(2.6) + round(1.25, 1) + sqrt(16) + floor(1.9) + ceil(1.1) + "
                "log10(100) + log(exp(1))"
            ),
            18.2,
        ),
        ('mean("t", "goodput_bps")', 30.0),
        ('mean("t", "goodput_bps", "stack=reno")', 20.0),
        ('mean("t", "goodput_bps", "ber=1e-6")', 10.0),
        ('lowest("t", "goodput_bps") + highest("t", "goodput_bps")', 60.0),
        ('best("t", "goodput_bps", "stack")', "cubic"),
        ('best("t", "goodput_bps", "delay", "stack=reno")', "250 ms"),
        ('completed("t", "stack=cubic")', 1.0),
    ],
)
def test_a_formula_has_its_value(source, expected):
    assert value(source) == (pytest.approx(expected) if isinstance(expected, float) else expected)


@golden.each("formula")
def test_what_is_no_formula_is_refused_when_it_is_read(case):
    case.hold(refusal(parse, "" if case == '""' else case, DRAWN, error=FormulaError))


@golden.each("formula without a value")
def test_a_formula_without_a_value_says_why(case):
    case.hold(refusal(value, case, error=FormulaError))


@given(st.text(alphabet=st.sampled_from(list("rate dlywho0123456789.e+-*/%()<>=\"',_[]{}:ifns\\\n")), max_size=60))
def test_any_text_has_a_value_or_is_refused(source):
    try:
        found = value(source)
    except FormulaError:
        return
    assert isinstance(found, float | str)


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ('mean("up", "goodput_bps", "ber=1e-5", "stack=cubic")', ["cubic 0.00001"]),
        ('best("up", "goodput_bps", "stack", "ber=0")', ["cubic 0", "reno 0"]),
        ('completed("up", "status=completed", "ber=0") if rate > 1 else 0', ["cubic 0", "reno 0"]),
        ('mean("up", "goodput_bps", "stack=reno" if rate > 1 else "ber=0")', ["cubic 0", "cubic 0.00001", "reno 0"]),
        ('mean("down", "goodput_bps") + rate', []),
    ],
)
def test_a_formula_reads_the_cells_that_its_conditions_on_axes_let_in(source, read):
    cells = {"cubic 0": 0, "cubic 0.00001": "0.00001", "reno 0": "0"}
    formula = parse(source, ["rate"])
    assert [one for one, ber in cells.items() if formula.reads("up", {"stack": one.split()[0], "ber": ber})] == read
