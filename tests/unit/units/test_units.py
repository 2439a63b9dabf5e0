"""Quantities: text to base units and back."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scpslab.core import units

KINDS = st.sampled_from(sorted(units.KINDS))


@given(KINDS, st.integers(0, units.LARGEST))
def test_text_reads_back_to_the_same_number(kind, number):
    assert units.parse(kind, units.text(kind, number)) == number


@given(KINDS, st.text(max_size=30))
def test_any_text_is_a_quantity_or_a_unit_error(kind, text):
    with contextlib.suppress(units.UnitError):
        assert 0 <= units.parse(kind, text) <= units.LARGEST


@given(KINDS, st.none() | st.booleans() | st.integers() | st.floats() | st.lists(st.integers()))
def test_what_is_no_text_has_no_unit(kind, value):
    with pytest.raises(units.UnitError, match="no unit"):
        units.parse(kind, value)


@pytest.mark.parametrize(
    ("kind", "text", "number"),
    [
        ("rate", "2 Mbit/s", 2_000_000),
        ("rate", "9600 bit/s", 9600),
        ("duration", "255.5 ms", 255_500_000),
        ("duration", "2 h", 7_200_000_000_000),
        ("size", "132.5 kB", 132_500),
        ("size", "256 KiB", 262_144),
        ("size", "1e3B", 1000),
    ],
)
def test_quantity_in_base_units(kind, text, number):
    assert units.parse(kind, text) == number


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("duration", 270, 'found 270 (no unit); expected a duration such as "255.5 ms"'),
        ("duration", "-1 s", "(negative)"),
        ("size", "0.5 B", "expected a whole number of B"),
        ("size", "5 kb", 'unit "kb"'),
        ("rate", "fast", "expected a rate such as"),
        ("size", "1e40 B", "expected a size of at most"),
        ("size", "1e99999999999 B", "expected a size"),
    ],
)
def test_what_is_wrong_is_said(kind, value, words):
    with pytest.raises(units.UnitError) as caught:
        units.parse(kind, value)
    assert words in str(caught.value)
