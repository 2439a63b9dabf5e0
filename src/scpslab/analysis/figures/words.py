"""The words around a picture, from the recipe and the plans of the cells in it; and a paper's marks, which are drawn
where the run has a cell under their conditions, and else named in the caption with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scpslab.analysis.figures.canvas import Words
from scpslab.analysis.figures.conditions import Conditions, Mismatch, differences, facts_of, said
from scpslab.analysis.figures.recipe import PaperSeries, Recipe
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


def listed(found: Sequence[Mismatch]) -> str:
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
    each = [differences(at_point(recipe.conditions, recipe, plan), plan) for plan in plans]
    if not any(each):
        return f"As {recipe.source}."
    nearest = min(each, key=len)
    if not nearest:
        return (
            f"As {recipe.source}, but some cells have other conditions: {listed(next(item for item in each if item))}."
        )
    return f"Drawn like {recipe.source}, under other conditions: {listed(nearest)}."


@dataclass(frozen=True)
class Mark:
    """A paper's series: the points that are drawn, and for the others the reason."""

    paper: PaperSeries
    points: tuple[tuple[float, float], ...]
    left_out: tuple[str, ...]


def marks_of(recipe: Recipe, plans: Sequence[Plan]) -> list[Mark]:
    """The marks of a recipe beside the cells of a panel."""
    return [_mark(paper, recipe, plans) for paper in getattr(recipe, "paper", ())]


def mark_sentences(recipe: Recipe, panels: Sequence[Sequence[Mark]], before: str) -> list[str]:
    """What the marks of all panels are, and which are left out and why; conditions that the text `before` names are not
    named again.
    """
    drawn = list(
        dict.fromkeys(f"{mark.paper.label}: {mark.paper.source}" for marks in panels for mark in marks if mark.points)
    )
    reasons: dict[str, list[str]] = {}
    for mark in (mark for marks in panels for mark in marks):
        for reason in mark.left_out:
            reasons.setdefault(reason, []).append(mark.paper.label)
    if not drawn and any(reason in before for reason in reasons):
        return ["The stated values are left out, because they are for those other conditions."]
    sentences = [f"Grey marks are stated values, {'; '.join(drawn)}."] if drawn else []
    labels = {paper.label for paper in getattr(recipe, "paper", ())}
    for reason, names in reasons.items():
        whose = "all" if set(names) == labels else ", ".join(dict.fromkeys(names))
        sentences.append(f"Stated values left out ({whose}): {reason}.")
    return sentences


def _mark(paper: PaperSeries, recipe: Recipe, plans: Sequence[Plan]) -> Mark:
    base = recipe.conditions or Conditions()
    conditions = paper.conditions.over(base) if paper.conditions else base
    drawn, reasons = [], []
    for x, y in paper.points:
        there = [plan for plan in plans if _is_at(recipe, plan, x)]
        mismatches = [differences(at_point(conditions, recipe, plan), plan) for plan in there]
        if any(not item for item in mismatches):
            drawn.append((x, y))
        else:
            reasons.append(listed(_nearest(mismatches)) if mismatches else f"no cell at {x:g}")
    return Mark(paper, tuple(drawn), tuple(dict.fromkeys(reasons)))


def _nearest(found: Sequence[tuple[Mismatch, ...]]) -> tuple[Mismatch, ...]:
    """The differences of the cell that comes nearest. A cell with the right hosts is nearer than one with others."""
    return min(found, key=lambda item: (any(difference.name == "hosts" for difference in item), len(item)))


def _is_at(recipe: Recipe, plan: Plan, x: float) -> bool:
    number = axis_number(str(plan.cell.axes.get(getattr(recipe, "axis", ""), "")))
    return number is not None and math.isclose(number / recipe.x.divisor(), x, rel_tol=1e-9)
