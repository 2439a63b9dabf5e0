"""Resolve: writes the scenario with every default value."""

from __future__ import annotations

import yaml

from scpslab.scenario.load import Scenario
from scpslab.topology import catalogue


def resolved_yaml(scenario: Scenario) -> str:
    """The resolved scenario as YAML, every default and every parameter of the topology in it; it loads again to the same cells.

    What a host, a link or a preset leaves open stays open here, because a sweep may close it; `scpslab plan` shows it closed for a cell.
    """
    data = scenario.model.model_dump(mode="json", by_alias=True, exclude={"variants"}, exclude_none=True)
    parameters = catalogue.module(scenario.model.topology).PARAMETERS
    values = parameters.read(scenario.model.parameters)
    data["parameters"] = {name: parameters.declared[name].text(value) for name, value in values.items() if value is not None}
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120)
