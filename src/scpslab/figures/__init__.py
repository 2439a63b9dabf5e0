"""Figures: recipes (analysis/figures/*.yaml) and records in, PNG and SVG out.

Order of reading: recipe.py (the form of a recipe), source.py (the data of a figure), plots/ (one file per kind), canvas.py (the looks),
drawing.py (files).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def draw(
    run_dir: Path, names: Sequence[str] | None = None, *, cells: Sequence[str] = (), formats: Sequence[str] = ("png", "svg"), models: Sequence[str] = ()
) -> list[Path]:
    """See `scpslab.figures.drawing.draw`, which takes a second to import: not for commands that draw nothing."""
    from scpslab.figures import drawing  # noqa: PLC0415 (the reason stands above)

    return drawing.draw(run_dir, names, cells=cells, formats=formats, models=models)


__all__ = ["draw"]
