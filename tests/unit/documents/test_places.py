"""Complaints that name the words which would have been right."""

from pathlib import Path

import pytest

from scpslab.core.choices import one_of
from scpslab.core.problems import Problem
from scpslab.documents.places import Places

FIGURES = ["fy97/fig14", "fy97/fig04", "fy97/fig24"]


@pytest.mark.parametrize(
    ("word", "choices", "meant"),
    [
        pytest.param("fy97/fig4", FIGURES, "fy97/fig04", id="a missing zero"),
        pytest.param("fy97/fig004", FIGURES, "fy97/fig04", id="a zero too many"),
        pytest.param("fy97/fig05", FIGURES, "fy97/fig04", id="another digit: the most similar"),
        pytest.param("1e-6", ["1e-16", "1e-06"], "1e-06", id="an exponent"),
        pytest.param("1.5", ["1.05", "1.55"], "1.55", id="zeros behind a point count"),
    ],
)
def test_the_nearest_choice_is_suggested(word, choices, meant):
    assert one_of(word, choices).endswith(f"Did you mean {meant}?")


def test_nothing_is_suggested_where_nothing_is_near():
    assert one_of("zebra", FIGURES) == "expected one of fy97/fig14, fy97/fig04, fy97/fig24. Choose one of these."
    assert one_of("zebra", []) == "expected none here. Remove it."


def test_complaints_come_in_the_order_of_the_file():
    places = Places(Path("mine.yaml"), {("a",): 7, ("b",): 2, ("c",): 4}).set_from("--set c=1", [("c",)])
    found = ((("c",), "set"), (("a",), "late"), (("d",), "missing"), (("b", "x"), "early"))
    said = str(places.error(Problem(at, what, "another") for at, what in found))
    assert said.splitlines() == [
        "mine.yaml: d: found missing; expected another",
        "mine.yaml:2: b.x: found early; expected another",
        "mine.yaml:7: a: found late; expected another",
        "--set c=1: c: found set; expected another",
    ]


def test_an_error_without_a_problem_is_a_mistake_of_the_program():
    with pytest.raises(AssertionError, match="without a problem"):
        Places(Path("mine.yaml"), {}).error([])
