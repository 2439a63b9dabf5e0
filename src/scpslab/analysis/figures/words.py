"""The words around a picture, from the recipe and the plans of the cells in it."""

from __future__ import annotations

from collections.abc import Sequence

from scpslab.analysis.figures.canvas import Words
from scpslab.analysis.figures.conditions import Conditions, Difference, differences
from scpslab.analysis.figures.facts import facts_of, said
from scpslab.analysis.figures.recipe import Recipe
from scpslab.analysis.figures.source import axis_number
from scpslab.analysis.run import RunCell
from scpslab.plan import Plan


def words(recipe: Recipe, cells: Sequence[RunCell], caption: str) -> Words:
    """Title, what the cells have in common, and the caption with the figure of the paper that the recipe re-draws."""
    plans = points(cells)
    return Words(
        recipe.title, said([facts_of(plan) for plan in plans]), " ".join(filter(None, (caption, origin(recipe, plans))))
    )


def points(cells: Sequence[RunCell]) -> list[Plan]:
    """A plan for each point of the sweep: repeats differ in nothing that is said."""
    return list({tuple(cell.plan.cell.axes.items()): cell.plan for cell in reversed(cells)}.values())[::-1]


def listed(found: Sequence[Difference]) -> str:
    """Differences in words."""
    return ", ".join(dict.fromkeys(map(str, found)))


def at_point(conditions: Conditions, recipe: Recipe, plan: Plan) -> Conditions:
    """The conditions at the place of a cell on the axis of a figure."""
    axis = getattr(recipe, "axis", None)
    number = axis_number(str(plan.cell.axes.get(axis, ""))) if axis else None
    return conditions if number is None else conditions.at(str(axis), number)


def origin(recipe: Recipe, plans: Sequence[Plan]) -> str:
    """Which figure of a paper the recipe re-draws, and whether the cells have its conditions."""
    if not recipe.source:
        return ""
    if recipe.conditions is None or not plans:
        return f"Drawn like {recipe.source}."
    found = [differences(at_point(recipe.conditions, recipe, plan), plan) for plan in plans]
    if not any(found):
        return f"As {recipe.source}."
    nearest = min(found, key=len)
    if not nearest:
        return (
            f"As {recipe.source}, but some cells have other conditions: {listed(next(item for item in found if item))}."
        )
    return f"Drawn like {recipe.source}, under other conditions: {listed(nearest)}."
