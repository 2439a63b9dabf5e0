"""Figures: recipes (analysis/figures/*.yaml) and records in, PNG and SVG out.

Order of reading: recipe.py (the form of a recipe, and what is said around its picture), plots/ (the kinds of pictures,
and how a recipe is read), source.py (the data of a figure), canvas.py (the looks), drawing.py (which figures a run has,
and their files).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def draw(run_dir: Path, names: Sequence[str] | None = None, **options: Any) -> list[Path]:
    """See `scpslab.analysis.figures.drawing.draw`."""
    # Takes a second to import: not for commands that draw nothing.
    from scpslab.analysis.figures import drawing  # noqa: PLC0415 (the reason stands above)

    return drawing.draw(run_dir, names, **options)
