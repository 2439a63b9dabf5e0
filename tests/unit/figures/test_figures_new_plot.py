"""A kind of picture is one thing: a file and its line in the table, as CONTRIBUTING says, and recipes may name it."""

import json
from pathlib import Path

import pytest

from tests.lab.copied_tree import ROOT, CopiedTree, NewKind

pytestmark = pytest.mark.slow

RECIPE = """\
kind: figure
version: 1
plot: spread
title: Made up
metric: transfer_s
x: {label: Place}
y: {label: Time (s)}
"""


class NewPlot(NewKind):
    """The made-up kind of picture of tests/data/new_plot."""

    @property
    def folder(self) -> Path:
        """Where it is described."""
        return ROOT / "tests" / "data" / "new_plot"


def test_a_kind_of_picture_from_a_file_of_its_own_is_drawn(run_dir, tmp_path):
    (tmp_path / "mine.yaml").write_text(RECIPE)
    (tmp_path / "wrong.yaml").write_text(RECIPE.replace("metric:", "metrik:"))
    (run_dir / "manifest.json").write_text(json.dumps({"format": 1, "scenario": "mine", "status": "completed"}))
    kind = NewPlot("kind of picture")
    tree = CopiedTree(tmp_path / "tree", kind)

    drawn = tree.scpslab("plot", str(run_dir), "--figure", str(tmp_path / "mine.yaml"), "--format", "svg")
    refused = tree.scpslab("plot", str(run_dir), "--figure", str(tmp_path / "wrong.yaml"))

    assert (drawn.returncode, drawn.stderr) == (0, "")
    assert "12 cells" in (run_dir / "figures" / "mine.svg").read_text()
    assert 'wrong.yaml:5: metrik: found the unknown key "metrik"' in refused.stderr


def test_contributing_names_its_places():
    (row,) = (line for line in (ROOT / "CONTRIBUTING.md").read_text().splitlines() if "| kind of picture |" in line)
    kind = NewPlot("kind of picture")
    assert [str(source.parent) for source in kind.sources] == ["analysis/figures/plots"]
    assert {entry["file"] for entry in kind.lines} == {"analysis/figures/plots/__init__.py"}
    assert "`src/scpslab/analysis/figures/plots/<name>.py`" in row
    assert "`PLOTS` in `analysis/figures/plots/__init__.py`" in row
