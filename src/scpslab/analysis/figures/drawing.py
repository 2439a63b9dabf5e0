"""From a run folder to picture files: finds the recipes that apply, draws them, and writes them under RUN/figures/."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from scpslab.analysis.figures.canvas import DEFAULT_FORMATS, FORMATS, save
from scpslab.analysis.figures.found import Found, find
from scpslab.analysis.figures.model_curves import MODELS as CURVES
from scpslab.analysis.figures.plots import PLOTS
from scpslab.analysis.figures.plots.metric_vs_axis import MetricVsAxis
from scpslab.analysis.figures.recipe import Recipe
from scpslab.analysis.figures.source import NothingToDrawError, Source, flow_at, label_of
from scpslab.analysis.traces import time_sequence
from scpslab.core.errors import ScenarioError, ScpslabError, UsageError
from scpslab.core.scratch import replace_text
from scpslab.runs import RunFolder
from scpslab.runs.own import own_folder

XPL = "xpl"


Warn = Callable[[str], None]


def refuse(text: str) -> None:
    """Makes an error of what could not be drawn."""
    raise ScenarioError(text)


def draw(
    run_dir: Path,
    names: Sequence[str] | None = None,
    *,
    cells: Sequence[str] = (),
    formats: Sequence[str] = DEFAULT_FORMATS,
    models: Sequence[str] = (),
    warn: Warn = refuse,
) -> list[Path]:
    """Draws the figures named (or in the file of a path), or all that apply to the run's scenario; returns the paths
    written, in the order of the names.

    `cells` replaces the recipes' own choice of cells; without names it draws only figures of single cells. `formats`:
    png, svg, pdf, xpl (time-sequence graphs of the cells, for xplot). `models`: curves for figures of kind
    metric-vs-axis, besides those of the recipe. Without names, figures of the project that this run has no data for are
    left out; `warn` hears of the user's own ones that cannot be drawn, and of files with mistakes. Of several names,
    those that can be drawn are drawn before the others raise.

    Raises:
        ResultError: there is no run, or the run has no data for a named figure.
        UsageError: a figure, cell or format is unknown.
    """
    unknown = [item for item in formats if item not in (*FORMATS, XPL)]
    if unknown:
        raise UsageError(
            f'--format: found "{unknown[0]}"; expected one of {", ".join((*FORMATS, XPL))}. Choose one of these.'
        )
    _check_models(models)
    source = Source(run_dir, tuple(cells))
    folder = RunFolder(run_dir).figures
    pictures = tuple(item for item in formats if item in FORMATS)
    paths: list[Path] = []
    if pictures:
        found = find(run_dir)
        paths = (_draw_named if names else _draw_applicable)(
            found, source, names or (), lambda recipe: _one(recipe, source, folder, pictures, models), warn
        )
    if XPL in formats:
        paths += _write_xpl(source, folder)
    return paths


def _draw_named(
    found: Found, _source: Source, names: Sequence[str], draw_one: Callable[[Recipe], list[Path]], _warn: Warn
) -> list[Path]:
    paths: list[Path] = []
    failed: list[ScpslabError] = []
    for name in names:
        try:
            paths += draw_one(found.named(name))
        except ScpslabError as error:
            failed.append(error)
    if failed:
        raise type(failed[0])("\n".join(map(str, failed))) from failed[0]
    return paths


def _draw_applicable(
    found: Found, source: Source, _names: Sequence[str], draw_one: Callable[[Recipe], list[Path]], warn: Warn
) -> list[Path]:
    for error in found.broken.values():
        warn(str(error))
    paths: list[Path] = []
    for recipe in _applicable(found.recipes, source):
        try:
            paths += draw_one(recipe)
        except NothingToDrawError as error:
            if recipe.is_own:
                warn(str(error))
    return paths


def _one(recipe: Recipe, source: Source, folder: Path, formats: tuple[str, ...], models: Sequence[str]) -> list[Path]:
    try:
        figure, stem = PLOTS[recipe.plot][1](_with_models(recipe, models), source)
    except NothingToDrawError as error:
        if not recipe.is_own:
            raise
        raise NothingToDrawError(f"{recipe.file}: {error}") from error
    return save(figure, folder, stem, formats)


def _check_models(models: Sequence[str]) -> None:
    unknown = [item for item in models if item not in CURVES]
    if unknown:
        raise UsageError(f'--model: found "{unknown[0]}"; expected one of {", ".join(CURVES)}. Choose one of these.')


def _with_models(recipe: Recipe, models: Sequence[str]) -> Recipe:
    """The recipe with these curves added, if it is of a kind that has curves."""
    if not models or not isinstance(recipe, MetricVsAxis):
        return recipe
    extended = recipe.model_copy(update={"models": tuple(dict.fromkeys((*recipe.models, *models)))})
    # No keys of the file, so the copy lacks them.
    extended._name, extended._file, extended._is_own = recipe.name, recipe.file, recipe.is_own  # noqa: SLF001
    return extended


def applicable(run_dir: Path) -> list[Recipe]:
    """The figures that `draw` draws for this run by default.

    Raises:
        ResultError: no run.
    """
    return _applicable(find(run_dir).recipes, Source(run_dir))


def _applicable(recipes: dict[str, Recipe], source: Source) -> list[Recipe]:
    fitting = [recipe for recipe in recipes.values() if recipe.applies(source.run.scenario)]
    # A figure for runs that no recipe speaks of.
    fitting = [recipe for recipe in fitting if not recipe.stands_in] or fitting
    return [recipe for recipe in fitting if not source.wanted_cells or "cells" in type(recipe).model_fields]


def _write_xpl(source: Source, folder: Path) -> list[Path]:
    own_folder(folder)
    paths = []
    for cell in source.cells(()):
        path = folder / f"time-sequence-{cell.folder.name}.xpl"
        replace_text(path, time_sequence(flow_at(cell, "source"), label_of(cell)))
        paths.append(path)
    return paths
