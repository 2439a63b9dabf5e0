"""The plans by which a variant is graded: from the instructor's scenarios and the signed parameters, never from a student's files."""

from __future__ import annotations

from scpslab import scenario
from scpslab.core.errors import UsageError
from scpslab.plan import Plan
from scpslab.scenario import planning
from scpslab_course.course.assignment import Assignment
from scpslab_course.course.variant import Variant, unfit


def plans(assignment: Assignment, variant: Variant) -> dict[str, dict[str, Plan]]:
    """The plans of every cell, by scenario and cell id. The variant has been verified (course.variant.verify).

    Raises:
        UsageError: the variant was issued for another assignment, or for another edition of it.
        ScenarioError: its parameters do not fit the scenarios.
    """
    if said := unfit(variant, assignment):
        raise UsageError(f"{variant.assignment}: {said}. Grade with the files that were issued.")
    found = {}
    for name in assignment.scenario_names:
        loaded = scenario.load(str(assignment.scenario(name)), assignment.settings(variant.parameters, name))
        found[name] = planning.plans(scenario.cells(loaded))
    return found
