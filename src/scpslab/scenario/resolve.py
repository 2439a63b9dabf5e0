"""Resolve: writes the scenario with every default value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from scpslab.scenario.load import Scenario
from scpslab.scenario.model import axis_values, settings_at

TOPOLOGY = "topology"


def resolved_yaml(scenario: Scenario, renamed: Mapping[str, str] | None = None) -> str:
    """The resolved scenario as YAML, every default and every parameter of the topology in it; it loads again to the
    same cells.

    What a host, a link or a preset leaves open stays open here, because a sweep may close it; `scpslab plan` shows it
    closed for a cell. `renamed`: the new paths of topologies of the user's own, where the file will be.
    """
    data = scenario.model.model_dump(mode="json", by_alias=True, exclude={"variants"}, exclude_none=True)
    if not _is_topology_swept(scenario):
        parameters = scenario.topologies.find(scenario.model.topology, scenario.path.parent).parameters
        values = parameters.read(scenario.model.parameters)
        data["parameters"] = {
            name: parameters.declared[name].text(value) for name, value in values.items() if value is not None
        }
    _rename(data, renamed or {})
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120)


def _is_topology_swept(scenario: Scenario) -> bool:
    """Whether points have other topologies, with parameters and defaults of their own."""
    return any(
        TOPOLOGY in settings_at(spec, value) for spec in scenario.model.sweep.values() for value in axis_values(spec)
    )


def _rename(data: dict[str, Any], renamed: Mapping[str, str]) -> None:
    data[TOPOLOGY] = renamed.get(data[TOPOLOGY], data[TOPOLOGY])
    for axis in data["sweep"].values():
        for settings in axis.get("cases", {}).values():
            if TOPOLOGY in settings:
                settings[TOPOLOGY] = renamed.get(settings[TOPOLOGY], settings[TOPOLOGY])
