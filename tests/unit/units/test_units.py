"""Quantities: text to base units and back."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scpslab.core import units
from tests import golden
from tests.cases import refusal

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


@golden.each("units", "case kind value")
def test_what_is_wrong_is_said(case, kind, value):
    case.hold(refusal(units.parse, kind, json.loads(value), error=units.UnitError))
