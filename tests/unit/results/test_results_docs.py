"""docs/results.md has every column with the meaning that the code states."""

from __future__ import annotations

from pathlib import Path

from scpslab.analysis.figures.plots import PLOTS
from scpslab.analysis.metrics import FAMILIES
from scpslab.plan.links import LOSS_CAUSES

DOCUMENT = (Path(__file__).parents[3] / "docs" / "results.md").read_text(encoding="utf-8")


def test_every_metric_is_explained_in_its_own_words():
    for family in FAMILIES:
        for column in family.columns:
            assert f"| `{column.name}` | {column.meaning} |" in DOCUMENT, column.name


def test_every_cause_and_every_kind_of_picture_is_named():
    for cause in LOSS_CAUSES:
        assert f"_lost_{cause}_packets" in DOCUMENT
    for plot in PLOTS:
        assert f"`{plot}`" in DOCUMENT
