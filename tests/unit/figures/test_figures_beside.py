"""Recipes and claims of the user's own, in figures/ and claims/ beside a scenario; a bad one costs only itself."""

import json
import shutil

import pytest

from scpslab.analysis.claims import load_beside
from scpslab.analysis.figures.drawing import draw
from scpslab.analysis.figures.plots import load
from scpslab.analysis.figures.recipe import RECIPES
from scpslab.analysis.figures.source import NothingToDrawError, Source
from scpslab.analysis.report import write_report
from scpslab.core.errors import ScenarioError, UsageError
from scpslab.runs.run import seal
from tests import golden
from tests.cases import changed, document, refusal
from tests.runs import write_manifest

pytestmark = pytest.mark.slow

RECIPE = document("recipe")
CLAIMS = document("claims of a scenario")


@pytest.fixture
def mine(run_dir, tmp_path, monkeypatch):
    """The folder of a scenario, whose run is run_dir."""
    monkeypatch.setenv("SCPSLAB_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "mine"
    (folder / "figures").mkdir(parents=True)
    (folder / "claims").mkdir()
    (folder / "rover.yaml").write_text("kind: scenario\n")
    (folder / "figures" / "good.yaml").write_text(RECIPE)
    (folder / "claims" / "good.yaml").write_text(CLAIMS)
    more = {"engine": "virtual", "seed": 7, "cells": {}, "file": "../mine/rover.yaml", "evidence": True}
    more["origin"] = seal(run_dir, folder)
    write_manifest(run_dir, "fig04-golden", **more)
    return folder


def drawn(run_dir, **options):
    warned = []
    names = {path.name for path in draw(run_dir, formats=("svg",), warn=warned.append, **options)}
    return names, warned


@pytest.mark.parametrize(
    ("more", "is_drawn"), [("", True), ("applies_to: [other]\n", False), ('applies_to: ["*golden*"]\n', True)]
)
def test_a_recipe_beside_the_scenario_is_drawn_with_those_of_the_project(run_dir, mine, more, is_drawn):
    """`applies_to` keeps it from other scenarios of its folder."""
    (mine / "figures" / "good.yaml").write_text(RECIPE + more)
    names, warned = drawn(run_dir)
    assert ("good.svg" in names, "fy97-fig04.svg" in names, warned) == (is_drawn, True, [])


def test_the_copies_in_the_run_count_where_the_scenario_has_gone(run_dir, mine):
    (run_dir / "figures").mkdir(exist_ok=True)
    (run_dir / "figures" / "copy.yaml").write_text(RECIPE)
    assert "copy.svg" not in drawn(run_dir)[0]
    shutil.rmtree(mine)
    assert "copy.svg" in drawn(run_dir)[0]


@pytest.mark.parametrize("origin", ["missing", "somebody else's", "of another folder"])
def test_a_stranger_s_manifest_names_no_folder_of_this_machine(run_dir, mine, scpslab, origin):
    """Neither recipes nor claims are read there, whole or broken; the run's own copies are."""
    (run_dir / "figures").mkdir(exist_ok=True)
    (run_dir / "figures" / "copy.yaml").write_text(RECIPE)
    (mine / "figures" / "private.yaml").write_text("a: [\n")
    fields = json.loads((run_dir / "manifest.json").read_text())
    fields["origin"] = {"somebody else's": "0" * 64, "of another folder": seal(run_dir, mine.parent)}.get(origin)
    (run_dir / "manifest.json").write_text(json.dumps(fields))
    code, out, err = scpslab("plot", run_dir, "--format", "svg")
    assert (code, "copy.svg" in out, "good.svg" in out, "private" in out + err) == (0, True, False, False)
    code, out, err = scpslab("claims", run_dir)
    assert "mine" not in out + err


def test_one_s_own_recipe_hides_the_project_s_of_that_name(run_dir, mine):
    (mine / "figures" / "fy97-fig04.yaml").write_text(RECIPE)
    draw(run_dir, ["fy97-fig04"], formats=("svg",))
    assert "a title" in (run_dir / "figures" / "fy97-fig04.svg").read_text()


@golden.each("recipe beside a scenario", "case old new")
def test_one_bad_recipe_is_told_with_its_place_and_the_others_are_drawn(run_dir, mine, scpslab, case, old, new):
    (mine / "figures" / "bad.yaml").write_bytes(changed(RECIPE, (old, new)).encode("latin-1"))
    names, warned = drawn(run_dir)
    assert {"good.svg", "fy97-fig04.svg"} <= names
    (told,) = warned
    case.hold(told, mine.parent)
    # Without somebody to warn it is an error.
    with pytest.raises(ScenarioError, match=r"bad\.yaml"):
        draw(run_dir)

    code, out, err = scpslab("plot", run_dir, "--format", "svg")
    assert (code, "good.svg" in out) == (1, True), "plot was asked for all that applies"
    assert err.startswith("warning: ")
    code, out, err = scpslab("plot", run_dir, "--format", "svg", "--figure", "good,bad")
    assert code in (2, 5)
    assert told.partition(": found")[2] in err
    code, out, err = scpslab("report", run_dir)
    assert (code, err.startswith("warning: ")) == (0, True)


def test_a_bad_recipe_of_the_project_costs_only_itself(run_dir, tmp_path, monkeypatch):
    folder = tmp_path / "recipes"
    shutil.copytree(RECIPES, folder)
    (folder / "fy97-fig05.yaml").write_text("a: [\n")
    monkeypatch.setattr("scpslab.analysis.figures.drawing.RECIPES", folder)
    names, warned = drawn(run_dir)
    assert "fy97-fig04.svg" in names
    assert [line.partition(":")[0].rpartition("/")[2] for line in warned] == ["fy97-fig05.yaml"]


def test_a_unit_counts_on_both_axes(run_dir, mine):
    first, second = [], []
    for label, lines in (("y (bit/s)", first), ("y (kbit/s), unit: kbit/s", second)):
        path = mine / "figures" / "new.yaml"
        path.write_text(RECIPE.replace("scale: log", "scale: linear").replace("y (s)", label))
        lines += [line.get_ydata() for line in load(path).draw(Source(run_dir)).axes[0].lines]
    assert [pytest.approx(values / 1000) for values in first] == second
    assert max(map(max, first)) > 1000


def test_of_several_named_figures_those_that_can_be_drawn_are(run_dir, mine):
    with pytest.raises(UsageError, match="found no such recipe"):
        draw(run_dir, ["nothing", "good"], formats=("svg",))
    assert (run_dir / "figures" / "good.svg").is_file()


def test_a_recipe_is_named_by_the_path_of_its_file(run_dir, tmp_path, scpslab, monkeypatch):
    (tmp_path / "elsewhere.yaml").write_text(RECIPE)
    monkeypatch.chdir(tmp_path)
    code, out, _ = scpslab("plot", run_dir, "--figure", "./elsewhere.yaml", "--format", "svg")
    assert (code, out.strip()) == (0, str(run_dir / "figures" / "elsewhere.svg"))


def test_the_report_draws_a_recipe_again_when_it_has_changed(run_dir, mine):
    write_report(run_dir)
    (mine / "figures" / "good.yaml").write_text(RECIPE.replace("a title", "another title"))
    text = write_report(run_dir).read_text()
    assert "another title" in text


def test_claims_beside_the_scenario_are_tested_with_those_of_the_project(run_dir, mine, scpslab):
    code, out, err = scpslab("claims", run_dir, "--format", "csv")
    assert (code, err) == (0, "")
    (line,) = [line for line in out.splitlines() if line.startswith("good,fast,")]
    assert "no data" not in line
    assert "\nfy97," in out
    assert "Goodput is above nothing" in write_report(run_dir).read_text()


def test_a_bad_file_of_claims_is_told_with_its_place_and_the_others_are_tested(run_dir, mine, scpslab):
    bad = mine / "claims" / "bad.yaml"
    bad.write_text(CLAIMS.replace("goodput_bps", "[1]"))
    code, out, err = scpslab("claims", run_dir, "--format", "csv")
    assert code == 1
    assert f"warning: {bad}:12: " in err
    assert "\ngood,fast," in out
    # From files alone there are no claims of papers.
    alone = ("claims", run_dir, "--format", "csv", "--file", mine / "claims" / "good.yaml")
    for more, expected in (((), 0), (("--file", bad), 1)):
        code, out, _ = scpslab(*alone, *more)
        assert (code, {line.partition(",")[0] for line in out.splitlines()}) == (expected, {"paper", "good"})
    assert scpslab("claims", run_dir, "--file", bad)[0] == 2


def test_claims_may_not_pass_for_a_paper_s(run_dir, mine):
    (mine / "claims" / "fy97.yaml").write_text(CLAIMS)
    known = type("Paper", (), {"name": "fy97"})
    papers, wrong = load_beside([run_dir], [known])
    assert [paper.name for paper in papers] == ["good"]
    assert len(wrong) == 1
    assert "fy97.yaml: found the name of a file of analysis/claims/; expected another name" in wrong[0]


@golden.each("recipe that a run does not fit", "case old new")
def test_what_a_recipe_says_of_a_run_that_cannot_be_is_told_with_its_file(run_dir, mine, case, old, new):
    (mine / "figures" / "good.yaml").write_text(changed(RECIPE, (old, new)))
    said = refusal(draw, run_dir, ["good"], error=NothingToDrawError)
    assert "/mine/figures/good.yaml: " in case.hold(said, mine.parent)


@pytest.mark.parametrize(
    "words", [("results",), ("compare", "--axis", "stack"), ("claims", "--format", "csv"), ("report",)]
)
def test_whoever_reads_a_capture_cut_short_is_told(run_dir, mine, scpslab, words):
    path = next((run_dir / "cells" / "stack=reno,ber=0,r1" / "captures").glob("ws4.pcap"))
    path.write_bytes(path.read_bytes()[:-7])
    (run_dir / "results.csv").unlink(missing_ok=True)
    command, *options = words
    _, _, err = scpslab(command, run_dir, *options)
    assert f"warning: {path}: found a capture that ends in the middle of a packet" in err
