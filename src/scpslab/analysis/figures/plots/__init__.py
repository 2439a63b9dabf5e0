"""Kinds of pictures: a recipe's model that draws itself, one line for each; and how a recipe is read."""

from __future__ import annotations

from pathlib import Path

from scpslab.analysis.figures.plots.metric_vs_axis import MetricVsAxis
from scpslab.analysis.figures.plots.over_time import OverTime
from scpslab.analysis.figures.plots.points import Points
from scpslab.analysis.figures.recipe import FORM, RECIPES, Recipe, recipe_files
from scpslab.core.choices import choice
from scpslab.core.problems import Problem
from scpslab.documents.document import Document, complaints, read

EXTENDS = "extends"
MERGED_KEYS = ("x", "y", "conditions")
PLOTS: dict[str, type[Recipe]] = {
    "metric-vs-axis": MetricVsAxis,
    "over-time": OverTime,
    "points": Points,
}


def load(path: Path, *, is_own: bool = False) -> Recipe:
    """Reads one recipe and merges its base. `is_own`: it lies beside a scenario of the user's.

    Raises:
        ScenarioError: all errors of the file, one line each.
    """
    document = read(path, FORM)
    if EXTENDS in document.data:
        document = _extended(document)
    plot = document.data.get("plot")
    model = PLOTS.get(plot) if isinstance(plot, str) else None
    if model is None:
        # Without a valid kind of picture, only keys that no kind has are certainly wrong.
        known = {(name,) for every in PLOTS.values() for name in every.model_fields if name not in Recipe.model_fields}
        problems = [problem for problem in complaints(document.data, Recipe) if problem.at[:1] not in known]
        if plot is not None:
            problems = [problem for problem in problems if problem.at != ("plot",)]
            problems.insert(0, Problem(("plot",), f'"{plot}"', *choice(plot, sorted(PLOTS))))
        raise document.places.error(problems)
    recipe = document.held_against(model, beside=(path, is_own))
    fixed = [name for name in ("x", "y") if not model.takes_units and getattr(recipe, name).unit]
    if fixed:
        found = f"a unit, but {plot} has units of its own (docs/figures.md)"
        raise document.places.error(Problem((name, "unit"), found, "none", "Remove it.") for name in fixed)
    return recipe


def _extended(document: Document) -> Document:
    """A recipe merged with its base, without the key that names the base."""
    own = Document({name: value for name, value in document.data.items() if name != EXTENDS}, document.places)
    folder, named = document.places.path.parent, document.data[EXTENDS]
    bases = sorted(path.stem.removeprefix("_") for path in folder.glob("_*.yaml"))
    if named not in bases:
        no_file = f'"{named}", but no file _{named}.yaml beside the recipe'
        found = no_file if isinstance(named, str) else "no name of a base"
        raise document.places.error([Problem((EXTENDS,), found, *choice(named, bases))])
    base = read(folder / f"_{named}.yaml", FORM)
    if EXTENDS in base.data:
        advice = "Copy the keys of the other base into this one."
        raise base.places.error([Problem((EXTENDS,), "a base that extends another base", "one level", advice)])
    return own.extending(base, MERGED_KEYS)


def load_all(folder: Path = RECIPES) -> dict[str, Recipe]:
    """Every recipe of a folder by name, in the order of the names.

    Raises:
        ScenarioError: see `load`.
    """
    return {path.stem: load(path) for path in recipe_files(folder)}
