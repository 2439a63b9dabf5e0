"""Recipes as data: strict, one level of inheritance, every shipped one loads."""

import pytest

from scpslab.analysis.figures.drawing import find
from scpslab.analysis.figures.plots import load, load_all
from scpslab.core.errors import ScenarioError, UsageError

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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (RECIPE.replace("metric-vs-axis", "pie"), '"pie"; expected one of aggregate-rate'),
        (RECIPE.replace("version: 1", "version: 2"), "version"),
        (RECIPE + "extends: nothing\n", "_nothing.yaml"),
        (
            RECIPE.replace("a title", "a" * 1_000_000),
            "title: found 1000000 characters; expected one line of 0 to 300 characters",
        ),
        (RECIPE.replace("x (1)", '"x\\u202e"'), "x.label: found the character .*202e"),
        (RECIPE.replace("y (s)", "y (s), min: 10, max: -5"), "y: found max -5, not above min 10"),
        (RECIPE.replace("y (s)", "y (s), min: 5, max: 5"), "y: found max 5, not above min 5"),
        (RECIPE.replace("y (s)", "y (s), max: -5"), "y: found max -5, not above 0"),
        (RECIPE.replace("y (s)", "y (s), scale: log, min: 0"), "y: found min 0 on a logarithmic axis"),
        (RECIPE.replace("y (s)", "y (s), max: 1e308"), r"y: found the limit 1e\+308"),
        (
            RECIPE.replace("metric-vs-axis", "time-sequence")
            .replace("metric: transfer_s\naxis: ber\n", "")
            .replace("y (s)", "y (kB), unit: kB"),
            r"bad\.yaml:8: y\.unit: found a unit, but time-sequence has units of its own .*Remove it\.",
        ),
        (
            RECIPE.replace("transfer_s", "goodput_bps").replace("y (s)", "y, unit: ms"),
            'y.unit: found "ms" for goodput_bps; expected one of bit/s, kbit/s',
        ),
        (RECIPE.replace("y (s)", "y, unit: parsec"), "Mbit/s"),
        ("- a\n", "found no mapping; expected keys such as kind, plot"),
        ("a: [\n", "bad.yaml:2: .*expected YAML"),
    ],
)
def test_what_is_wrong_with_a_recipe_is_named(folder, text, said):
    (folder / "bad.yaml").write_text(text)
    with pytest.raises(ScenarioError, match=said):
        load(folder / "bad.yaml")


MARK = "paper: [{label: TCP, points: [[0, 1]]%s}]\n"
TWO = "kind: figure\nversion: 1\nextends: base\n"


@pytest.mark.parametrize(
    ("base", "text", "complaints"),
    [
        # All that is wrong is said at once.
        (
            None,
            RECIPE.replace("title: a title\n", "") + "colour: red\n",
            ["two.yaml: title: found nothing", 'two.yaml:10: colour: found the unknown key "colour"'],
        ),
        # An unknown kind of picture hides no other mistake; metric and axis are keys of some kind.
        (
            None,
            RECIPE.replace("metric-vs-axis", "metric-vs-axes").replace("scale: log", "scale: lug") + "colour: red\n",
            [
                'two.yaml:4: plot: found "metric-vs-axes"; expected one of aggregate-rate',
                "two.yaml:9: x.scale: ",
                "two.yaml:11: colour: ",
            ],
        ),
        # What is wrong with a base has the base's line.
        (
            RECIPE.replace("label: y (s)", "label: y (s), scale: lin").replace("metric: transfer_s", "metric: 5"),
            TWO + "y: {max: much}\n",
            [
                '_base.yaml:10: y.scale: found "lin"; expected one of linear, log. Did you mean linear?',
                'two.yaml:4: y.max: found "much"; expected a number. Correct the value.',
                "_base.yaml:7: metric: found 5; expected text. Correct the value.",
            ],
        ),
        # What a recipe replaces whole has no lines of its base.
        (
            RECIPE + MARK % ", source: Fig 1",
            TWO + MARK % "",
            ["two.yaml:4: paper[0].source: found nothing; expected this key. Add it."],
        ),
        ("extends: c\n", TWO, ["_base.yaml:1: extends: found a base that extends another base; expected one level."]),
        # A value of none of several types is one complaint.
        (
            None,
            RECIPE + "where: {ber: {a: 1}}\n",
            [
                (
                    "two.yaml:11: where.ber: found keys with values; expected true or false, a whole number, a number or "
                    "text. Correct the value."
                )
            ],
        ),
    ],
)
def test_every_complaint_has_its_place(folder, base, text, complaints):
    if base is not None:
        (folder / "_base.yaml").write_text(base)
    (folder / "two.yaml").write_text(text)
    with pytest.raises(ScenarioError) as caught:
        load(folder / "two.yaml")
    lines = [line.removeprefix(f"{folder}/") for line in str(caught.value).splitlines()]
    assert len(lines) == len(complaints)
    assert all(line.startswith(said) for line, said in zip(lines, complaints, strict=True)), lines


def test_a_recipe_s_name_is_its_file_s(folder):
    path = folder / "one.yaml"
    assert load(path).name == "one"
    path.write_text(RECIPE + "name: two\n")
    with pytest.raises(ScenarioError, match='found the unknown key "name"'):
        load(path)


def test_an_unknown_name_is_answered_with_the_nearest(tmp_path):
    with pytest.raises(UsageError, match="fy97-fig04"):
        find(tmp_path).named("fy97-fig4")
