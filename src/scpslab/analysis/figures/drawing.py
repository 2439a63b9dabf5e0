"""From a run folder to picture files: finds the recipes that apply, draws them, and writes them under RUN/figures/."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scpslab.analysis.figures.canvas import DEFAULT_FORMATS, FORMATS, save
from scpslab.analysis.figures.plots import load
from scpslab.analysis.figures.recipe import RECIPES, Recipe, recipe_files
from scpslab.analysis.figures.source import NothingToDrawError, Source
from scpslab.core.choices import one_of
from scpslab.core.errors import ScenarioError, ScpslabError, UsageError
from scpslab.runs import RunFolder

SUFFIXES = (".yaml", ".yml")
Warn = Callable[[str], None]


@dataclass(frozen=True)
class Found:
    """Recipes by name, and what is wrong with the files that are none: those of the project, and the user's own in the
    folder figures/ beside the scenario, which hide one of the project's with their name.
    """

    recipes: dict[str, Recipe]
    broken: dict[str, ScenarioError]

    def named(self, name: str) -> Recipe:
        """The recipe of that name, or in the file of that path.

        Raises:
            ScenarioError: its file has mistakes.
            UsageError: there is no such recipe; the message has the nearest names.
        """
        if name.endswith(SUFFIXES) or "/" in name:
            return load(Path(name), is_own=True)
        if name in self.broken:
            raise self.broken[name]
        if name not in self.recipes:
            raise UsageError(
                f"--figure {name}: found no such recipe; {one_of(name, self.recipes)} Recipes are in "
                f"{RECIPES.parent.name}/{RECIPES.name}/; the path of a file, such as ./{name}.yaml, works too."
            )
        return self.recipes[name]

    def applicable(self, source: Source) -> list[Recipe]:
        """Those that are drawn for a run by default."""
        fitting = [recipe for recipe in self.recipes.values() if recipe.applies(source.run.scenario)]
        # A figure for runs that no recipe speaks of.
        fitting = [recipe for recipe in fitting if not recipe.stands_in] or fitting
        return [recipe for recipe in fitting if not source.wanted_cells or _shows_single_cells(recipe)]


def _shows_single_cells(recipe: Recipe) -> bool:
    return "cells" in type(recipe).model_fields


def find(run_dir: Path) -> Found:
    """The recipes for a run. A file with a mistake costs what it says: the others are found all the same."""
    recipes = Found({}, {})
    for folder, is_own in ((RECIPES, False), (RunFolder(run_dir).beside() / "figures", True)):
        for path in recipe_files(folder):
            recipes.recipes.pop(path.stem, None)
            try:
                recipes.recipes[path.stem] = load(path, is_own=is_own)
            except ScenarioError as error:
                recipes.broken[path.stem] = error
    return recipes


def refuse(text: str) -> None:
    """Makes an error of what could not be drawn."""
    raise ScenarioError(text)


def draw(
    run_dir: Path,
    names: Sequence[str] | None = None,
    *,
    cells: Sequence[str] = (),
    formats: Sequence[str] = DEFAULT_FORMATS,
    warn: Warn = refuse,
) -> list[Path]:
    """Draws the figures named (or in the file of a path), or all that apply to the run's scenario; returns the paths
    written, in the order of the names.

    `cells` replaces the recipes' own choice of cells; without names it draws only figures of single cells. `formats`:
    png, svg, pdf. Without names, figures of the project that this run has no data for are left out; `warn` hears of the
    user's own ones that cannot be drawn, and of files with mistakes. Of several names, those that can be drawn are
    drawn before the others raise.

    Raises:
        ResultError: there is no run, or the run has no data for a named figure.
        UsageError: a figure, cell or format is unknown.
    """
    if unknown := [word for word in formats if word not in FORMATS]:
        expected = f"expected one of {', '.join(FORMATS)}. Choose one of these."
        raise UsageError(f'--format: found "{unknown[0]}"; {expected}')
    source = Source(run_dir, tuple(cells))
    folder = RunFolder(run_dir).figures
    paths: list[Path] = []

    def draw_one(recipe: Recipe) -> None:
        if cells and not _shows_single_cells(recipe):
            found = f"found a choice of cells for the figure {recipe.name}, which shows all"
            advice = "Leave --cell out, or choose another figure."
            raise UsageError(f"--cell: {found}; expected a figure of single cells, such as over-time. {advice}")
        try:
            paths.extend(save(recipe.draw(source), folder, recipe.stem(source), tuple(formats)))
        except NothingToDrawError as error:
            if not recipe.is_own:
                raise
            raise NothingToDrawError(f"{recipe.file}: {error}") from error

    if names:
        _draw_named(find(run_dir), names, draw_one)
    else:
        _draw_applicable(find(run_dir), source, draw_one, warn)
    return paths


def _draw_named(found: Found, names: Sequence[str], draw_one: Callable[[Recipe], None]) -> None:
    failed: list[ScpslabError] = []
    for name in names:
        try:
            draw_one(found.named(name))
        except ScpslabError as error:
            failed.append(error)
    if failed:
        raise type(failed[0])("\n".join(map(str, failed))) from failed[0]


def _draw_applicable(found: Found, source: Source, draw_one: Callable[[Recipe], None], warn: Warn) -> None:
    for error in found.broken.values():
        warn(str(error))
    for recipe in found.applicable(source):
        try:
            draw_one(recipe)
        except NothingToDrawError as error:
            if recipe.is_own:
                warn(str(error))


def applicable(run_dir: Path) -> list[Recipe]:
    """The figures that `draw` draws for this run by default.

    Raises:
        ResultError: no run.
    """
    return find(run_dir).applicable(Source(run_dir))
