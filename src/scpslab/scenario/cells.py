"""Cells: one for every point of the sweep and repeat, each a complete scenario of its own."""

from __future__ import annotations

import copy
import itertools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from scpslab.core.errors import ScenarioError
from scpslab.core.names import EXPECTED, LONGEST_CELL, is_name, shown
from scpslab.documents.document import validated
from scpslab.documents.places import Places
from scpslab.documents.quantities import AxisValue
from scpslab.plan.topology.description import Network
from scpslab.scenario.load import Scenario, check
from scpslab.scenario.model import ScenarioFile
from scpslab.scenario.model.sweep import axis_values, settings_at
from scpslab.scenario.paths import PathError, set_value, without_left_out

# All plans of a run are in memory at once, half a gigabyte for so many (docs/scale.md). A scenario with more cells is
# probably a mistake.
MOST_CELLS = 100_000


@dataclass(frozen=True)
class Cell:
    """One point of the sweep with one repeat.

    `axes` maps axis to value or case label; `model` is the scenario at that point.
    """

    id: str
    scenario: Scenario
    model: ScenarioFile
    network: Network
    places: Places
    axes: Mapping[str, AxisValue]
    repeat: int


def cells(scenario: Scenario) -> list[Cell]:
    """All cells, in the order of the axes.

    Raises:
        ScenarioError: the sweep sets invalid values. One line for each, however many points have it.
    """
    _check_number(scenario)
    found: list[Cell] = []
    wrong: list[str] = []
    for point in points(scenario.model):
        try:
            model, network, places = _at_point(scenario, point)
        except ScenarioError as error:
            wrong += str(error).splitlines()
            continue
        found += [
            Cell(cell_id(point, repeat), scenario, model, network, places, point, repeat)
            for repeat in range(1, scenario.model.repeats + 1)
        ]
    wrong += _bad_ids(scenario, (cell.id for cell in found))
    if not found and not wrong:
        wrong.append(
            f"{scenario.places.of(('skip',))}: found every combination skipped; expected at least one that runs. "
            "Remove entries of skip."
        )
    if wrong:
        raise ScenarioError("\n".join(dict.fromkeys(wrong)))
    return found


def _check_number(scenario: Scenario) -> None:
    """Refuses a sweep with too many cells. It multiplies the sizes and builds no cell."""
    sizes = {axis: len(axis_values(spec)) for axis, spec in scenario.model.sweep.items()}
    number = math.prod(sizes.values()) * scenario.model.repeats
    if number > MOST_CELLS:
        shown_sizes = " x ".join(
            [*(f"{size} {axis}" for axis, size in sizes.items()), f"{scenario.model.repeats} repeats"]
        )
        raise ScenarioError(
            f"{scenario.places.of(('sweep',))}: found {number} cells ({shown_sizes}, before skip); "
            f"expected at most {MOST_CELLS}. "
            "Give an axis fewer values, repeat less, or run the sweep in parts with --set sweep.AXIS=[VALUES]."
        )


def points(model: ScenarioFile) -> list[dict[str, AxisValue]]:
    """Every combination of axis values that is not skipped."""
    choices = [[(axis, value) for value in axis_values(spec)] for axis, spec in model.sweep.items()]
    combinations = [dict(point) for point in itertools.product(*choices)]
    return [point for point in combinations if not any(_matches(point, skip) for skip in model.skip)]


def _matches(point: Mapping[str, AxisValue], skip: Mapping[str, AxisValue]) -> bool:
    return all(point.get(axis) == value for axis, value in skip.items())


def cell_id(point: Mapping[str, AxisValue], repeat: int) -> str:
    """The cell's name, which states its place in the sweep and can be a folder's name:
    `stack=fy97-reno,ber=1e-06,r1`.
    """
    return ",".join([*(f"{axis}={_text(value)}" for axis, value in point.items()), f"r{repeat}"])


def _text(value: AxisValue) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return re.sub(r"[^A-Za-z0-9.+_-]", "", text)


def _bad_ids(scenario: Scenario, ids: Iterable[str]) -> list[str]:
    where = scenario.places.of(("sweep",))
    seen: set[str] = set()
    wrong: list[str] = []
    for one in ids:
        if one in seen:
            wrong.append(
                f'{where}: found two cells with the name "{one}"; expected values that differ in letters or digits. '
                "Rename a case."
            )
        if len(one) > LONGEST_CELL:
            wrong.append(
                f'{where}: found the cell name "{one[:40]}…" of {len(one)} characters; '
                f"expected at most {LONGEST_CELL}. Shorten axis names or values."
            )
        elif not is_name(one, LONGEST_CELL):
            wrong.append(
                f"{where}: found the cell name {shown(one)}; expected {EXPECTED}. Rename a case or change a value."
            )
        seen.add(one)
    return wrong


def _at_point(scenario: Scenario, point: Mapping[str, AxisValue]) -> tuple[ScenarioFile, Network, Places]:
    """The scenario with the values of one point set."""
    if not point:
        return scenario.model, scenario.network, without_left_out(scenario.data, scenario.places)[1]
    data: dict[str, Any] = copy.deepcopy(dict(scenario.data))
    places = scenario.places
    wrong: list[str] = []
    for axis, value in point.items():
        source = f"{scenario.places.of(('sweep', axis))}={_shown(value)}"
        for path, setting in settings_at(scenario.model.sweep[axis], value).items():
            try:
                places = places.set_from(source, set_value(data, path, setting, scenario.network))
            except PathError as error:
                wrong.append(f"{scenario.places.of(('sweep', axis))}: {path}: {error}. Correct the path.")
    if wrong:
        raise ScenarioError("\n".join(wrong))
    data, places = without_left_out(data, places)
    model = validated(data, places, ScenarioFile)
    return model, check(model, places, scenario.topologies), places


def _shown(value: AxisValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
