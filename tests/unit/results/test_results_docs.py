"""docs/columns.md has every column and cause, docs/figures.md every kind of picture."""

from __future__ import annotations

import re
from pathlib import Path

from scpslab.analysis.figures.plots import PLOTS
from scpslab.analysis.metrics.families import FAMILIES
from scpslab.plan.links import LOSS_CAUSES

DOCS = Path(__file__).parents[3] / "docs"
COLUMNS = (DOCS / "columns.md").read_text(encoding="utf-8")
FIGURES = (DOCS / "figures.md").read_text(encoding="utf-8")


def test_every_metric_has_its_row_and_every_row_its_metric():
    """The page has the kinds of workload in their order, and of each the columns in theirs."""
    tables = COLUMNS.partition("### Bulk transfer\n")[2].partition("### Packet losses by cause\n")[0]
    rows = re.findall(r"^\| `(\w+)` \| .+\. \|$", tables, flags=re.MULTILINE)
    assert rows == [column.name for family in FAMILIES for column in family.columns]


def test_every_cause_and_every_kind_of_picture_is_named():
    for cause in LOSS_CAUSES:
        assert f"_lost_{cause}_packets" in COLUMNS
    for plot in PLOTS:
        assert f"`{plot}`" in FIGURES


def test_every_key_of_a_kind_of_picture_is_named():
    keys = {key for model in PLOTS.values() for key in model.model_fields}
    assert [key for key in sorted(keys) if f"`{key}`" not in FIGURES and f"`{key}: " not in FIGURES] == []
