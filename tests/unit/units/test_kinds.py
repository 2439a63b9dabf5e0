"""Kinds register themselves, from wherever they are."""

import pytest

from scpslab.core.kinds import Registry


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
