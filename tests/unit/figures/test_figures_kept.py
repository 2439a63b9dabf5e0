"""Pictures are drawn again when a byte of what a drawing reads or has written changed, and only then."""

import json

import pytest

from scpslab.analysis import figures
from scpslab.analysis.collect import collect
from scpslab.analysis.figures import drawing
from tests.runs import write_manifest

pytestmark = pytest.mark.slow

BER = "fy97-fig04.png"


@pytest.fixture
def draw(run_dir, monkeypatch):
    """Draws all figures of the run; gives their paths, and whether anything was drawn."""
    write_manifest(run_dir, "fy97/fig04", engine="virtual", cells={})
    collect(run_dir)
    calls = []
    really = drawing.draw
    monkeypatch.setattr(drawing, "draw", lambda *words, **options: calls.append(1) or really(*words, **options))

    def run(**options):
        calls.clear()
        return figures.draw(run_dir, formats=("png",), **options), bool(calls)

    return run


def test_the_same_run_is_drawn_once(run_dir, draw):
    paths, drew = draw()
    assert (drew, run_dir / "figures" / BER in paths) == (True, True)
    assert draw() == (paths, False)


@pytest.mark.parametrize("change", ["results.csv", "scenario.resolved.yaml", "cells"])
def test_a_byte_of_the_run_more_and_it_is_drawn_again(run_dir, draw, change):
    draw()
    path = run_dir / change if change != "cells" else next(run_dir.glob("cells/*/plan.json"))
    path.write_text((path.read_text() if path.exists() else "") + "\n")
    assert draw()[1]
    assert not draw()[1]


def test_a_picture_that_was_edited_or_removed_is_drawn_again_with_the_same_bytes(run_dir, draw):
    (paths, _), picture = draw(), run_dir / "figures" / BER
    good, record = picture.read_bytes(), (run_dir / "figures" / figures.FILE).read_bytes()
    for spoil in (lambda: picture.write_bytes(good[:-1]), picture.unlink):
        spoil()
        assert draw() == (paths, True)
        assert (picture.read_bytes(), (run_dir / "figures" / figures.FILE).read_bytes()) == (good, record)


def test_other_options_code_recipes_or_another_library_draw_again(tmp_path, draw, monkeypatch):
    draw()
    assert draw(models=("mathis",))[1]
    assert draw()[1]
    monkeypatch.setattr(figures, "version", lambda name: "0")
    assert draw()[1]
    for name, root in (("PACKAGE", tmp_path / "code"), ("RECIPES", tmp_path / "analysis" / "figures")):
        root.mkdir(parents=True)
        monkeypatch.setattr(figures, name, root)
        assert draw()[1]
        (root / "more.yaml").write_text("")
        assert draw()[1]
        assert not draw()[1]


def test_what_could_not_be_drawn_is_said_every_time(run_dir, draw):
    (run_dir / "figures").mkdir(exist_ok=True)
    (run_dir / "figures" / "broken.yaml").write_text("kind: figure\n")
    for _ in range(2):
        warned = []
        assert draw(warn=warned.append)[1]
        assert any("broken.yaml" in text for text in warned)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"inputs": 1}',
        '{"inputs": "INPUTS", "pictures": {"../../results.csv": "x"}}',
        '{"inputs": "INPUTS", "pictures": {"": 1}}',
    ],
)
def test_a_damaged_record_counts_for_nothing(run_dir, draw, text):
    paths, _ = draw()
    record = run_dir / "figures" / figures.FILE
    record.write_text(text.replace("INPUTS", json.loads(record.read_text())["inputs"]))
    assert draw() == (paths, True)
