"""Labels that would lie: values from --set or a variant that a sweep replaces, or that contradict what a case of it is
called after.

A row of results carries the labels of its point. Whoever reads "fy97-reno" there must get what the case says, and no
--set may be lost without a word.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from scpslab.core.problems import KeyPath, dotted
from scpslab.documents.document import as_tuples
from scpslab.documents.quantities import AxisValue, value_text
from scpslab.plan.topology import Network
from scpslab.scenario.model import Cases, ScenarioFile, Values, axis_values, settings_at
from scpslab.scenario.paths import PathError, below, leaves_out, places_of, set_value
from scpslab.scenario.stacks import STACKS, stack


@dataclass(frozen=True)
class Given:
    """A value that somebody set: `source` names it in messages, `path` is as they wrote it."""

    source: str
    path: str
    value: Any


def lies(before: Mapping[str, Any], given: Sequence[Given], model: ScenarioFile, network: Network) -> Iterator[str]:
    """What is wrong with these values, given the data before them and the scenario after them."""
    yield from _renamed(before, model)
    plain = [one for one in given if not one.path.startswith("sweep")]
    # The values of axes are thousands, and no place is among them.
    data = {key: value for key, value in before.items() if key != "sweep"}
    for axis, spec in model.sweep.items() if plain else ():
        for value in axis_values(spec):
            yield from _lies_at(data, plain, axis, spec, value, network)


def _renamed(before: Mapping[str, Any], model: ScenarioFile) -> Iterator[str]:
    axes = before.get("sweep")
    for axis, was in (axes if isinstance(axes, dict) else {}).items():
        spec = model.sweep.get(axis)
        for label, settings in was.get("cases", {}).items():
            if isinstance(spec, Cases) and label in spec.cases and as_tuples(spec.cases[label]) != as_tuples(settings):
                yield (
                    f"sweep.{axis}.cases.{label}: found other settings for a case of the scenario; "
                    f'expected the label "{label}" to keep its meaning. '
                    "Give your case a name of its own."
                )


def _lies_at(
    before: Mapping[str, Any],
    given: Sequence[Given],
    axis: str,
    spec: Values | Cases,
    value: AxisValue,
    network: Network,
) -> Iterator[str]:
    where = f'case "{value}" of the axis "{axis}"' if isinstance(spec, Cases) else f'the axis "{axis}"'
    settings = settings_at(spec, value)
    try:
        swept = {place: setting for path, setting in settings.items() for place in places_of(before, path, network)}
        for one in given:
            lost = next((place for place, own in _leaves(before, one, network) if _is_lost(place, own, swept)), None)
            if lost is not None:
                yield (
                    f"{one.source}: found {dotted(lost)}, which {where} replaces; expected a key that no axis sets. "
                    f"{_advice(axis, spec, one)}"
                )
            elif (contradicted := _contradicted(before, one, settings, swept, network)) is not None:
                yield (
                    f"{one.source}: found {contradicted}, which contradicts {where}; expected what its preset says. "
                    f"{_advice(axis, spec, one)}"
                )
    except PathError:
        return  # said where the path is followed


def _leaves(data: Mapping[str, Any], one: Given, network: Network) -> list[tuple[KeyPath, Any]]:
    return [leaf for place in places_of(data, one.path, network) for leaf in below(place, one.value)]


def _is_lost(place: KeyPath, own: Any, swept: Mapping[KeyPath, Any]) -> bool:
    """Whether a point of the sweep puts another value at a place, above it or below it."""
    for other, setting in swept.items():
        if leaves_out(place, own) or leaves_out(other, setting):
            continue  # What is there is used where it is not left out.
        shared = min(len(place), len(other))
        if place[:shared] == other[:shared] and not (place == other and own == setting):
            return True
    return False


def _contradicted(
    before: Mapping[str, Any], one: Given, settings: Mapping[str, Any], swept: Mapping[KeyPath, Any], network: Network
) -> str | None:
    """The setting of a host that the sweep gives a stack or preset, and whose value there is another one with `one`
    than without.
    """
    hosts = [place[1] for place in swept if place[0] == "hosts" and _names_a_stack(place, swept[place])]
    if not hosts:
        return None
    without, having = copy.deepcopy(dict(before)), copy.deepcopy(dict(before))
    set_value(having, one.path, one.value, network)
    for data in (without, having):
        for path, setting in settings.items():
            set_value(data, path, setting, network)
    for host in dict.fromkeys(map(str, hosts)):
        its, mine = (_settled((data.get("hosts") or {}).get(host)) for data in (without, having))
        for name, was in its.items():
            if was is not None and name in mine and mine[name] != was:
                return f"hosts.{host} with {name} {value_text(mine[name])} instead of {value_text(was)}"
    return None


def _names_a_stack(place: KeyPath, setting: Any) -> bool:
    return place[2:] in (("stack",), ("preset",)) or (
        len(place) == 2 and isinstance(setting, dict) and bool({"stack", "preset"} & set(setting))
    )


def _settled(host: Any) -> Mapping[str, Any]:
    """What is settled of a host's TCP, by its preset or by its own words; nothing for a host that cannot be, which is
    said elsewhere.
    """
    try:
        return STACKS[stack(host)].model_validate(host).settled()
    except (KeyError, ValidationError):
        return {}


def _advice(axis: str, spec: Values | Cases, one: Given) -> str:
    if isinstance(spec, Values):
        return f"Set the axis: --set 'sweep.{axis}=[{value_text(one.value)}]'."
    return (
        f"Choose cases with --set 'sweep.{axis}=[LABEL]', or add one of your own: "
        f"--set 'sweep.{axis}.cases.NAME={{PATH: VALUE}}'."
    )
