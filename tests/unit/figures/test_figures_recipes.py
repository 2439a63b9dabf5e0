"""Recipes as data: strict, one level of inheritance, every shipped one loads."""

from __future__ import annotations

import pytest

from scpslab.errors import ScenarioError, UsageError
from scpslab.figures.plots import MODELS
from scpslab.figures.recipe import RECIPES, load, load_all, named

RECIPE = """
kind: figure
version: 1
plot: metric-vs-axis
title: a title
source: Fig 0
metric: transfer_s
axis: ber
x: {label: x (1), scale: log}
y: {label: y (s)}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "one.yaml").write_text(RECIPE)
    return tmp_path


def test_every_shipped_recipe_loads_and_names_its_source_and_units():
    recipes = load_all(MODELS)
    assert {f"fy97-fig{number:02}" for number in range(4, 19)} <= set(recipes)
    for name, recipe in recipes.items():
        assert recipe.name == name
        assert recipe.applies_to, name
        assert "(" in recipe.y.label, f"{name}: y label without a unit"
        for paper in getattr(recipe, "paper", ()):
            assert paper.source


def test_the_paper_s_clean_link_values_are_in_the_throughput_figure():
    paper = {series.label: dict(series.points) for series in load_all(MODELS)["fy97-fig04"].paper}
    assert paper["TCP"][0] == 74
    assert paper["SCPS-TP, no congestion control"] == {0: 93, 1e-5: 88, 5e-5: 72}


def test_a_recipe_overrides_its_base_key_by_key_in_the_axes(folder):
    (folder / "_base.yaml").write_text(RECIPE)
    (folder / "two.yaml").write_text("kind: figure\nversion: 1\nextends: base\ntitle: another\ny: {max: 7}\n")
    recipe = load(folder / "two.yaml", MODELS)
    assert (recipe.title, recipe.source, recipe.name) == ("another", "Fig 0", "two")
    assert (recipe.y.label, recipe.y.max) == ("y (s)", 7)
    assert "_base" not in load_all(MODELS, folder)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (RECIPE + "colour: red\n", "colour"),
        (RECIPE.replace("metric: transfer_s", "metric: [1]"), "metric"),
        (RECIPE.replace("metric-vs-axis", "pie"), '"pie"; expected one of aggregate-rate'),
        (RECIPE.replace("version: 1", "version: 2"), "version"),
        (RECIPE + "extends: nothing\n", "_nothing.yaml"),
        ("- a\n", "found list"),
        ("a: [\n", "recipe in YAML"),
    ],
)
def test_what_is_wrong_with_a_recipe_is_named(folder, text, said):
    (folder / "bad.yaml").write_text(text)
    with pytest.raises(ScenarioError, match=said):
        load(folder / "bad.yaml", MODELS)


def test_all_that_is_wrong_is_said_at_once(folder):
    (folder / "bad.yaml").write_text(RECIPE.replace("title: a title\n", "") + "colour: red\n")
    with pytest.raises(ScenarioError) as caught:
        load(folder / "bad.yaml", MODELS)
    assert "title" in str(caught.value)
    assert "colour" in str(caught.value)


def test_a_base_of_a_base_is_refused(folder):
    (folder / "_b.yaml").write_text("extends: c\n")
    (folder / "a.yaml").write_text("extends: b\n")
    with pytest.raises(ScenarioError, match="one level"):
        load(folder / "a.yaml", MODELS)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match="fy97-fig04"):
        named(load_all(MODELS), "fy97-fig4")


def test_recipes_are_found_from_a_clone():
    assert RECIPES.parts[-2:] == ("analysis", "figures")
    assert RECIPES.is_dir()
