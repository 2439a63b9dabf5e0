"""Recipes as data: strict, one level of inheritance, every shipped one loads."""

import pytest

from scpslab.analysis.figures.plots import load, load_all
from scpslab.core.errors import ScenarioError
from tests import golden
from tests.cases import changed, document, refusal

RECIPE = changed(document("recipe"), ("source: mine", "source: Fig 0"), ("goodput_bps", "transfer_s"))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "one.yaml").write_text(RECIPE)
    return tmp_path


def test_every_shipped_recipe_loads_and_names_its_source_and_units():
    recipes = load_all()
    assert {f"fy97-fig{number:02}" for number in range(4, 19)} <= set(recipes)
    for name, recipe in recipes.items():
        assert recipe.name == name
        assert recipe.applies_to, name
        assert "(" in recipe.y.label, f"{name}: y label without a unit"
        for paper in getattr(recipe, "paper", ()):
            assert paper.source
    paper = {series.label: dict(series.points) for series in recipes["fy97-fig04"].paper}
    assert (paper["TCP"][0], paper["SCPS-TP, no congestion control"]) == (74, {0: 93, 1e-5: 88, 5e-5: 72})


def test_a_recipe_overrides_its_base_key_by_key_in_the_axes(folder):
    (folder / "_base.yaml").write_text(RECIPE)
    (folder / "two.yaml").write_text("kind: figure\nversion: 1\nextends: base\ntitle: another\ny: {max: 7}\n")
    recipe = load(folder / "two.yaml")
    assert (recipe.title, recipe.source, recipe.name) == ("another", "Fig 0", "two")
    assert (recipe.y.label, recipe.y.max) == ("y (s)", 7)
    assert "_base" not in load_all(folder)


@golden.each("recipe", "case old new")
def test_what_is_wrong_with_a_recipe_is_named(folder, case, old, new):
    (folder / "bad.yaml").write_text(changed(RECIPE, (old, new)))
    case.hold(refusal(load, folder / "bad.yaml"), folder)


MARK = "paper: [{label: TCP, points: [[0, 1]]%s}]\n"
TWO = "kind: figure\nversion: 1\nextends: base\n"


@pytest.mark.parametrize(
    ("name", "base", "text"),
    [
        ("several at once", None, RECIPE.replace("title: a title\n", "") + "colour: red\n"),
        (
            "an unknown kind of picture and others",
            None,
            RECIPE.replace("metric-vs-axis", "metric-vs-axes").replace("scale: log", "scale: lug") + "colour: red\n",
        ),
        (
            "in a base and in the recipe",
            RECIPE.replace("label: y (s)", "label: y (s), scale: lin").replace("metric: transfer_s", "metric: 5"),
            TWO + "y: {max: much}\n",
        ),
        ("in what the recipe replaces whole", RECIPE + MARK % ", source: Fig 1", TWO + MARK % ""),
        ("a base of a base", "extends: c\n", TWO),
        ("a value of none of several types", None, RECIPE + "where: {ber: {a: 1}}\n"),
    ],
)
def test_every_complaint_has_its_place(folder, name, base, text):
    if base is not None:
        (folder / "_base.yaml").write_text(base)
    (folder / "two.yaml").write_text(text)
    golden.Case("recipe with a base", name).hold(refusal(load, folder / "two.yaml"), folder)


def test_a_recipe_s_name_is_its_file_s(folder):
    path = folder / "one.yaml"
    assert load(path).name == "one"
    path.write_text(RECIPE + "name: two\n")
    with pytest.raises(ScenarioError, match='found the unknown key "name"'):
        load(path)
