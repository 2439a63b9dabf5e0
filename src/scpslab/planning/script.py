"""The plan's `script`: what happens while a cell runs."""

from __future__ import annotations

from typing import Any

from scpslab import units
from scpslab.scenario import Cell
from scpslab.scenario.model import LinkStep, RunStep
from scpslab.seeds import stream


def plan_script(cell: Cell, links: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The steps of a cell in the order of their times."""
    steps = [_link(step, number, cell, links) if isinstance(step, LinkStep) else _run(step) for number, step in enumerate(cell.model.script or ())]
    return sorted(steps, key=lambda step: int(step["t_ns"]))


def _link(step: LinkStep, number: int, cell: Cell, links: list[dict[str, Any]]) -> dict[str, Any]:
    link = next(link for link in links if link["name"] == step.link)
    names = [direction["name"] for direction in link["directions"] if step.direction in (None, direction["name"])]
    planned: dict[str, Any] = {"t_ns": units.parse("duration", step.at), "do": "link", "link": step.link, "directions": names}
    if step.ber is not None:
        # The directions' errors are independent of each other.
        return planned | {"change": "ber", "value": step.ber, "seeds": [stream(cell.scenario.seed, "script", number, name, cell.repeat) for name in names]}
    if step.delay is not None:
        return planned | {"change": "delay", "value": units.parse("duration", step.delay)}
    if step.rate is not None:
        return planned | {"change": "rate", "value": units.parse("rate", step.rate)}
    return planned | {"change": "state", "value": step.state}


def _run(step: RunStep) -> dict[str, Any]:
    return {
        "t_ns": units.parse("duration", step.at),
        "do": "run",
        "node": step.node,
        "command": step.command,
        "patience_ns": units.parse("duration", step.patience),
        "required": step.required,
    }
