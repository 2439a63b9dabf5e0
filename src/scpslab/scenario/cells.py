"""Cells: one for every point of the sweep and repeat, each a complete scenario of its own."""

from __future__ import annotations

import copy
import gc
import itertools
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from scpslab.core.errors import ScenarioError
from scpslab.core.names import EXPECTED, LONGEST_CELL, is_formula, is_name, shown
from scpslab.core.problems import KeyPath, dotted
from scpslab.documents.document import Places
from scpslab.documents.quantities import AxisValue
from scpslab.documents.yaml_lines import value_text
from scpslab.plan.topology import Network
from scpslab.scenario.consistency import error_problems, problems
from scpslab.scenario.load import MADE_OF, Given, Scenario, changed_model, network_with, surveyed_at
from scpslab.scenario.model import ScenarioFile, axis_values, settings_at
from scpslab.scenario.paths import Data, PathError, below, leaves_out, places_of, set_value, value_at, without_left_out
from scpslab.scenario.survey import Surveyed

# All plans of a run are in memory at once, half a gigabyte for so many (docs/scale.md). A scenario with more cells is
# probably a mistake.
MOST_CELLS = 100_000
# Of a scenario's data: what its network is made of, besides links; what points do not need; what names it only; and of
# a direction, what goes wrong there.
NETWORK = ("topology", "parameters", "routes", "hosts", "containers", "limits")
SWEEP = ("sweep", "skip", "variants")
NAMES = ("title", "source", "description", "seed", "checks")
ERRORS = ("errors", "duplicate")


@dataclass(frozen=True)
class Cell:
    """One point of the sweep with one repeat.

    `axes` maps axis to value or case label; `model` is the scenario at that point, without its sweep. Cells of one
    `shape` differ in nothing but the errors of their links and what they are called.
    """

    id: str
    scenario: Scenario
    model: ScenarioFile
    surveyed: Surveyed
    shape: str
    places: Places
    axes: Mapping[str, AxisValue]
    repeat: int


def cells(scenario: Scenario) -> list[Cell]:
    """All cells, in the order of the axes.

    Raises:
        ScenarioError: the sweep sets invalid values. One line for each, however many points have it.
    """
    _check_number(scenario)
    with uncollected():
        return _cells(scenario)


@contextmanager
def uncollected() -> Iterator[None]:
    """No search for cycles meanwhile: cells and plans have none, and each search would look at all of them again, which
    takes a third of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _cells(scenario: Scenario) -> list[Cell]:
    found: list[Cell] = []
    wrong: list[str] = []
    known = _Known.of(scenario.model)
    for point in points(scenario.model):
        try:
            model, surveyed, shape, places = _at_point(scenario, point, known)
        except ScenarioError as error:
            wrong += str(error).splitlines()
            continue
        found += [
            Cell(cell_id(point, repeat), scenario, model, surveyed, shape, places, point, repeat)
            for repeat in range(1, scenario.model.repeats + 1)
        ]
    wrong += _bad_ids(scenario, (cell.id for cell in found))
    wrong += _formulas(scenario)
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
    return [point for point in combinations if not any(skip.items() <= point.items() for skip in model.skip)]


def cell_id(point: Mapping[str, AxisValue], repeat: int) -> str:
    """The cell's name, which states its place in the sweep and can be a folder's name:
    `stack=fy97-reno,ber=1e-06,r1`.
    """
    return ",".join([*(f"{axis}={in_ids(value_text(value))}" for axis, value in point.items()), f"r{repeat}"])


def in_ids(text: str, besides: str = "") -> str:
    """What of a text stands in names of cells; `besides`: other characters that stay."""
    return "".join(one for one in text if (one.isascii() and one.isalnum()) or one in f".+_-{besides}")


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


def _formulas(scenario: Scenario) -> list[str]:
    """Labels that whoever opens a table of the results would run; the file may be a stranger's."""
    return [
        f"{scenario.places.of(('sweep', axis))}: found {shown(value)}; "
        "expected a label that begins with none of = + - @, which a spreadsheet takes for a formula. Rename it."
        for axis, spec in scenario.model.sweep.items()
        for value in axis_values(spec)
        if isinstance(value, str) and is_formula(value)
    ]


@dataclass(frozen=True)
class _Known:
    """What points of a sweep share, by what of their data it is made from: networks, and shapes that fit.

    `swept`: the sections of the file that any point changes; the others are the same everywhere.
    """

    swept: frozenset[str]
    described: dict[str, Network] = field(default_factory=dict)
    networks: dict[str, Surveyed] = field(default_factory=dict)
    shapes: dict[str, Surveyed] = field(default_factory=dict)

    @classmethod
    def of(cls, model: ScenarioFile) -> _Known:
        """Nothing yet, of the points of a scenario."""
        settings = (settings_at(spec, value) for spec in model.sweep.values() for value in axis_values(spec))
        return cls(frozenset(path.partition(".")[0] for paths in settings for path in paths))

    def network(self, scenario: Scenario, data: Data, settings: Iterable[tuple[str, Any]]) -> Network:
        """The network of a point, for which `*` in its paths stands.

        Raises:
            ScenarioError: a path of a variant or an override stands for other places there.
        """
        made_of = [(path, value) for path, value in settings if path.partition(".")[0] in MADE_OF]
        key = json.dumps(made_of, default=str)
        if key not in self.described:
            topologies, was = scenario.topologies, scenario.network
            network = network_with(data, made_of, scenario.model, scenario.places, topologies, was)
            self.described[key] = network
            stars = [one for one in scenario.given if "*" in one.path] if network is not was else []
            if wrong := [one for one in stars if _stands_for(data, one, network) != _stands_for(data, one, was)]:
                raise ScenarioError("\n".join(_moved(one, made_of) for one in wrong))
        return self.described[key]

    def surveyed(self, scenario: Scenario, data: Data, model: ScenarioFile, places: Places) -> str:
        """The shape of a point whose network is known then.

        Raises:
            ScenarioError: all contradictions in it, one line each.
        """
        data = {key: value for key, value in data.items() if key in self.swept and key not in NAMES}
        if "links" in data:
            data["links"] = {
                name: {direction: _without(said, ERRORS) for direction, said in directions.items()}
                for name, directions in data["links"].items()
            }
        made_of, linked = (
            json.dumps([data.get(key) for key in keys], default=str) for keys in (NETWORK, (*NETWORK, "links"))
        )
        shape = json.dumps(data, default=str)
        folder = places.path.parent
        if shape not in self.shapes:
            if made_of not in self.networks:
                self.networks[made_of] = surveyed_at(model, places, scenario.topologies)[1]
            if linked not in self.networks:
                self.networks[linked] = self.networks[made_of].with_links(model)
            surveyed = self.networks[linked]
            wrong = [*problems(model, surveyed, folder), *error_problems(model, surveyed.network, folder)]
            if not wrong:
                self.shapes[shape] = surveyed
        else:
            wrong = list(error_problems(model, self.shapes[shape].network, folder))
        if wrong:
            raise places.error(wrong)
        return shape


def _without(data: Mapping[str, Any], keys: Collection[str]) -> Data:
    return {key: value for key, value in data.items() if key not in keys}


def _at_point(
    scenario: Scenario, point: Mapping[str, AxisValue], known: _Known
) -> tuple[ScenarioFile, Surveyed, str, Places]:
    """The scenario with the values of one point set."""
    if not point:
        return scenario.model, scenario.surveyed, "", without_left_out(scenario.data, scenario.places)[1]
    whole = _without(scenario.data, SWEEP)
    data: Data = {key: copy.deepcopy(value) if key in known.swept else value for key, value in whole.items()}
    changed: dict[KeyPath, str] = {}
    wrong: list[str] = []
    axes = {axis: settings_at(scenario.model.sweep[axis], value) for axis, value in point.items()}
    network = known.network(scenario, data, (one for settings in axes.values() for one in settings.items()))
    own: list[tuple[str, KeyPath, Any]] = []
    for axis, settings in axes.items():
        source = f"{scenario.places.of(('sweep', axis))}={value_text(point[axis])}"
        for path, setting in settings.items():
            try:
                found = set_value(data, path, setting, network)
            except PathError as error:
                there = "" if network is scenario.network else f" of {cell_id(point, 1).rpartition(',')[0]}"
                told = error.at((), "Correct the path.")
                wrong.append(f"{scenario.places.of(('sweep', axis))}: {path}{there}: {told}")
                continue
            changed |= dict.fromkeys(found, source)
            own += [(axis, place, setting) for place in found if len(place) == path.count(".") + 1]
    if wrong := wrong or [*_overwritten(scenario, data, own)]:
        raise ScenarioError("\n".join(wrong))
    places = replace(scenario.places, set_by={**scenario.places.set_by, **changed})
    data, places = without_left_out(data, places)
    model = changed_model(scenario.model, data, known.swept, places)
    shape = known.surveyed(scenario, data, model, places)
    return model, known.shapes[shape], shape, places


def _stands_for(data: Data, one: Given, network: Network) -> list[KeyPath] | None:
    try:
        return places_of(data, one.path, network)
    except PathError:
        return None


def _moved(one: Given, made_of: Iterable[tuple[str, Any]]) -> str:
    there = ", ".join(f"{path} {value_text(value)}" for path, value in made_of)
    return (
        f"{one.source}: found {one.path}, which stands for other places with {there}; expected the same everywhere. "
        f"Make it an axis, which follows: --set 'sweep.NAME={{set: [{one.path}], values: [{value_text(one.value)}]}}'."
    )


def _overwritten(scenario: Scenario, data: Data, own: Sequence[tuple[str, KeyPath, Any]]) -> Iterator[str]:
    """Values of axes that are not in a point's data, because a later axis has replaced them: the point's label lies."""
    for axis, place, setting in own:
        for leaf, value in below(place, setting):
            if leaves_out(leaf, value) or value_at(data, leaf) == value:
                continue
            # A later axis may set something within a list.
            other = next(name for name, at, _ in reversed(own) if at == leaf[: len(at)])
            if other != axis:
                yield (
                    f'{scenario.places.of(("sweep", axis))}: found {dotted(leaf)}, which the axis "{other}" replaces; '
                    "expected a key that no other axis sets. Name the places that each axis is for."
                )
