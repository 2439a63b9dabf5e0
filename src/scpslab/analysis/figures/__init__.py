"""Figures: recipes (analysis/figures/*.yaml) and records in, PNG and SVG out.

Order of reading: recipe.py (the form of a recipe), found.py (which recipes there are for a run), source.py (the data of
a figure), plots/ (one file per kind), canvas.py (the looks), drawing.py (files), kept.py (what need not be drawn
again).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

from scpslab.analysis.figures.kept import Drawing


def draw(
    run_dir: Path,
    names: Sequence[str] | None = None,
    *,
    cells: Sequence[str] = (),
    formats: Sequence[str] = ("png", "svg"),
    models: Sequence[str] = (),
    warn: Callable[[str], None] | None = None,
) -> list[Path]:
    """See `scpslab.analysis.figures.drawing.draw`.

    Without names and cells, pictures that still show the run as it is are returned as they are.
    """
    if names or cells:
        paths: list[Path] = _drawing().draw(
            run_dir, names, cells=cells, formats=formats, models=models, warn=warn or _drawing().refuse
        )
        return paths
    drawing = Drawing.of(run_dir, (formats, models))
    if (pictures := drawing.pictures()) is not None:
        return pictures
    warnings: list[str] = []

    def note(text: str) -> None:
        warnings.append(text)
        (warn or _drawing().refuse)(text)

    paths = _drawing().draw(run_dir, formats=formats, models=models, warn=note)
    # What was warned of is said again the next time.
    if not warnings:
        drawing.keep(paths)
    return paths


def _drawing() -> ModuleType:
    """The module that draws, which takes a second to import: not for commands that draw nothing."""
    from scpslab.analysis.figures import drawing  # noqa: PLC0415 (the reason stands above)

    return drawing


__all__ = ["draw"]
