"""Figures: recipes (analysis/figures/*.yaml) and records in, PNG and SVG out.

Order of reading: recipe.py (the form of a recipe), found.py (which recipes there are for a run), source.py (the data of a figure),
plots/ (one file per kind), canvas.py (the looks), drawing.py (files).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path


def draw(
    run_dir: Path,
    names: Sequence[str] | None = None,
    *,
    cells: Sequence[str] = (),
    formats: Sequence[str] = ("png", "svg"),
    models: Sequence[str] = (),
    warn: Callable[[str], None] | None = None,
) -> list[Path]:
    """See `scpslab.figures.drawing.draw`, which takes a second to import: not for commands that draw nothing."""
    from scpslab.figures import drawing  # noqa: PLC0415 (the reason stands above)

    return drawing.draw(run_dir, names, cells=cells, formats=formats, models=models, warn=warn or drawing.refuse)


__all__ = ["draw"]
