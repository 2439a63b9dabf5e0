"""The conditions of cells, from their plans: the random errors and traffic that they met, and the settings in which two
plans differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scpslab import plan as plans
from scpslab.plan import Plan
from scpslab.plan.error_models import NO_MODEL
from scpslab.plan.script import LinkStep

# What names a cell, and what is drawn: no conditions that somebody chose.
NAMES = ("id", "scenario", "axes", "repeat")
SEEDS = ("kernel_seed", "seed", "seeds", "payload_seed", "rates_bps")


@dataclass(frozen=True)
class Difference:
    """A setting with different values in two plans; None where a plan does not have it."""

    setting: str
    first: str | None
    second: str | None


def drawn(plan: Plan) -> dict[str, object]:
    """What chance does to a cell, by place: the errors of every direction, disorder, random traffic.

    Not the kernel's own draws (ports, sequence numbers).
    """
    return dict(_drawn(plan))


def differences(first: Plan, second: Plan) -> list[Difference]:
    """The settings that differ, in the order of the plan; seeds and what is drawn with them are left out."""
    one, other = (dict(_of_plan(plan)) for plan in (first, second))
    return [
        Difference(name, one.get(name), other.get(name))
        for name in dict.fromkeys((*one, *other))
        if one.get(name) != other.get(name)
    ]


def _drawn(plan: Plan) -> Iterator[tuple[str, object]]:
    for impairment in plan.cell.impairments:
        place, errors = f"{impairment.link} {impairment.direction}", impairment.errors
        if errors is not None and errors.model != NO_MODEL:
            yield f"errors of {place}", (errors.model, errors.settings, errors.seed, errors.vector_errors)
        if impairment.seed is not None:
            yield f"disorder of {place}", (impairment.duplicate, impairment.seed)
    for workload in plan.cell.workloads:
        if workload.drawn:
            yield f"traffic of {workload.name}", (workload.start_ns, workload.drawn)
    for step in plan.cell.script:
        if isinstance(step, LinkStep) and step.seeds:
            yield f"errors of {step.link} from {step.t_ns / 1e9:g} s on", (step.directions, step.value, step.seeds)


def _of_plan(plan: Plan) -> Iterator[tuple[str, str]]:
    written = plans.write(plan)
    for name, part in (written["network"] | written["cell"]).items():
        if name not in (*NAMES, *SEEDS):
            yield from _settings(name, part)


def _settings(place: str, value: Any) -> Iterator[tuple[str, str]]:
    """Every value of a plan with its place; parts of a list that have names are found by them."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            if name not in SEEDS:
                yield from _settings(f"{place}.{name}", part)
    elif isinstance(value, list) and any(isinstance(part, Mapping) for part in value):
        for number, part in enumerate(value):
            yield from _settings(f"{place}.{_name(part) or number}", part)
    else:
        yield place, json.dumps(value)


def _name(part: Any) -> str:
    """What finds a part of a list in another plan; "" if nothing does."""
    if not isinstance(part, Mapping):
        return ""
    return str(part.get("name") or ".".join(part[key] for key in ("link", "direction") if key in part))
