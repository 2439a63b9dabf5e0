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


@golden.each("quantities in base units", "case kind text")
def test_quantity_in_base_units(case, kind, text):
    case.hold(units.parse(kind, text))


@golden.each("units", "case kind value")
def test_what_is_wrong_is_said(case, kind, value):
    case.hold(refusal(units.parse, kind, json.loads(value), error=units.UnitError))
