"""From a run folder to picture files: finds the recipes that apply, draws them, and writes them under RUN/figures/."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scpslab.errors import UsageError
from scpslab.figures.canvas import DEFAULT_FORMATS, FORMATS, save
from scpslab.figures.model_curves import MODELS as CURVES
from scpslab.figures.plots import MODELS, PLOTS
from scpslab.figures.plots.metric_vs_axis import MetricVsAxis
from scpslab.figures.recipe import Recipe, load_all, named
from scpslab.figures.source import NothingToDrawError, Source, flow_at, label_of
from scpslab.results import xpl
from scpslab.runfolder import RunFolder

XPL = "xpl"


def draw(
    run_dir: Path, names: Sequence[str] | None = None, *, cells: Sequence[str] = (), formats: Sequence[str] = DEFAULT_FORMATS, models: Sequence[str] = ()
) -> list[Path]:
    """Draws the figures named, or all that apply to the run's scenario; returns the paths written, in the order of the names.

    `cells` replaces the recipes' own choice of cells; without names it draws only figures of single cells. `formats`: png, svg, pdf, xpl
    (time-sequence graphs of the cells, for xplot). `models`: curves for figures of kind metric-vs-axis, besides those of the recipe.
    Without names, figures that this run has no data for are left out.

    Raises:
        ResultError: there is no run, or the run has no data for a named figure.
        UsageError: a figure, cell or format is unknown.
    """
    unknown = [item for item in formats if item not in (*FORMATS, XPL)]
    if unknown:
        raise UsageError(f'--format: found "{unknown[0]}"; expected one of {", ".join((*FORMATS, XPL))}. Choose one of these.')
    _check_models(models)
    source = Source(run_dir, tuple(cells))
    folder = RunFolder(run_dir).figures
    pictures = tuple(item for item in formats if item in FORMATS)
    paths: list[Path] = []
    if pictures:
        recipes = load_all(MODELS)
        chosen = [named(recipes, name) for name in names] if names else _applicable(recipes, source)
        for recipe in chosen:
            try:
                figure, stem = PLOTS[recipe.plot][1](_with_models(recipe, models), source)
            except NothingToDrawError:
                if names:
                    raise
                continue
            paths += save(figure, folder, stem, pictures)
    if XPL in formats:
        paths += _write_xpl(source, folder)
    return paths


def _check_models(models: Sequence[str]) -> None:
    unknown = [item for item in models if item not in CURVES]
    if unknown:
        raise UsageError(f'--model: found "{unknown[0]}"; expected one of {", ".join(CURVES)}. Choose one of these.')


def _with_models(recipe: Recipe, models: Sequence[str]) -> Recipe:
    """The recipe with these curves added, if it is of a kind that has curves."""
    if not models or not isinstance(recipe, MetricVsAxis):
        return recipe
    extended = recipe.model_copy(update={"models": tuple(dict.fromkeys((*recipe.models, *models)))})
    extended._name = recipe.name  # noqa: SLF001 (no key of the file, so the copy lacks it)
    return extended


def applicable(run_dir: Path) -> list[str]:
    """Names of the figures that `draw` draws for this run by default.

    Raises:
        ResultError: no run.
    """
    return [recipe.name for recipe in _applicable(load_all(MODELS), Source(run_dir))]


def _applicable(recipes: dict[str, Recipe], source: Source) -> list[Recipe]:
    fitting = [recipe for recipe in recipes.values() if recipe.applies(source.run.scenario)]
    # A figure for runs that no recipe speaks of.
    fitting = [recipe for recipe in fitting if not recipe.stands_in] or fitting
    return [recipe for recipe in fitting if not source.wanted_cells or "cells" in type(recipe).model_fields]


def _write_xpl(source: Source, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for cell in source.cells(()):
        path = folder / f"time-sequence-{cell.folder.name}.xpl"
        path.write_text(xpl.time_sequence(flow_at(cell, "source"), label_of(cell)), encoding="utf-8")
        paths.append(path)
    return paths
