"""The conditions of cells, from their plans: the random errors and traffic that they met, and the settings in which two plans differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scpslab import plan as plans
from scpslab.plan import Plan
from scpslab.plan.error_models import NO_MODEL
from scpslab.plan.links import Direction
from scpslab.plan.script import LinkStep

# What names a cell, and what is drawn: no conditions that somebody chose.
NO_SETTINGS = ("cell", "format")
SEEDS = ("seed", "seeds", "payload_seed", "rates_bps")


@dataclass(frozen=True)
class Difference:
    """A setting with different values in two plans; None where a plan does not have it."""

    setting: str
    first: str | None
    second: str | None


def drawn(plan: Plan) -> dict[str, object]:
    """What chance does to a cell, by place: the errors of every direction, disorder, random traffic. Not the kernel's own draws (ports, sequence numbers)."""
    return dict(_drawn(plan))


def differences(first: Plan, second: Plan) -> list[Difference]:
    """The settings that differ, in the order of the plan; seeds and what is drawn with them are left out."""
    one, other = (dict(_settings("", plans.write(plan))) for plan in (first, second))
    return [Difference(name, one.get(name), other.get(name)) for name in dict.fromkeys((*one, *other)) if one.get(name) != other.get(name)]


def _drawn(plan: Plan) -> Iterator[tuple[str, object]]:
    for link in plan.all_links:
        for direction in link.directions:
            place, errors = f"{link.name} {direction.name}", direction.errors
            if errors is not None and errors.model != NO_MODEL:
                yield f"errors of {place}", (errors.model, errors.settings, errors.seed, errors.vector_errors)
            if isinstance(direction, Direction) and direction.disorder is not None:
                yield f"disorder of {place}", direction.disorder
    for workload in plan.workloads:
        if workload.drawn:
            yield f"traffic of {workload.name}", (workload.start_ns, workload.drawn)
    for step in plan.script or ():
        if isinstance(step, LinkStep) and step.seeds:
            yield f"errors of {step.link} from {step.t_ns / 1e9:g} s on", (step.directions, step.value, step.seeds)


def _settings(place: str, value: Any) -> Iterator[tuple[str, str]]:
    """Every value of a plan with its place; parts of a list that have names are found by them."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            if name not in SEEDS and (place or name not in NO_SETTINGS):
                yield from _settings(f"{place}.{name}" if place else name, part)
    elif isinstance(value, list) and any(isinstance(part, Mapping) for part in value):
        for number, part in enumerate(value):
            name = part.get("name", number) if isinstance(part, Mapping) else number
            yield from _settings(f"{place}.{name}", part)
    else:
        yield place, json.dumps(value)
