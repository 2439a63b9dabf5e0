"""Quantities: text to base units and back. Kinds register themselves, from wherever they are."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scpslab.core import units
from scpslab.core.kinds import Registry
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


@pytest.fixture
def registry(monkeypatch) -> Registry[int]:
    """A registry whose finder knows two kinds, which register themselves in another order."""
    kinds: Registry[int] = Registry("workloads", "plan")

    def find(family: str, layer: str) -> list[str]:
        assert (family, layer) == ("workloads", "plan")
        kinds.register("b", 2)
        kinds.register("a", 1)
        return ["a", "b"]

    monkeypatch.setattr(Registry, "finder", find)
    return kinds


def test_a_kind_from_elsewhere_stands_behind_those_that_are_found(registry):
    registry.register("mine", 3)

    assert list(registry.items()) == [("a", 1), ("b", 2), ("mine", 3)]
    registry.register("late", 4)
    assert registry["late"] == 4
    assert list(registry)[-1] == "late"


def test_nothing_is_found_before_somebody_looks(registry, monkeypatch):
    monkeypatch.setattr(Registry, "finder", None)

    registry.register("mine", 3)


def test_a_name_is_taken_once(registry):
    assert "a" in registry
    with pytest.raises(ValueError, match="workloads: found a second kind a; expected a name of its own"):
        registry.register("a", 5)


def test_an_unknown_kind_is_named_with_those_that_there_are(registry):
    with pytest.raises(KeyError, match="workloads: found no kind c; expected one of a, b"):
        registry["c"]
    assert registry.get("c") is None
    assert len(registry) == 2
