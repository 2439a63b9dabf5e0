"""The plan's `script`: what happens while a cell runs."""

from __future__ import annotations

from scpslab.core.seeds import stream
from scpslab.plan import script as planned
from scpslab.plan.network import NetworkPlan
from scpslab.scenario import Cell
from scpslab.scenario.model import LinkStep, RunStep


def plan_script(cell: Cell, network: NetworkPlan) -> tuple[planned.Step, ...]:
    """The steps of a cell in the order of their times."""
    steps = [
        _link(step, number, cell, network) if isinstance(step, LinkStep) else _run(step)
        for number, step in enumerate(cell.model.script or ())
    ]
    return tuple(sorted(steps, key=lambda step: step.t_ns))


def _link(step: LinkStep, number: int, cell: Cell, network: NetworkPlan) -> planned.LinkStep:
    link = next(link for link in network.all_links if link.name == step.link)
    names = tuple(direction.name for direction in link.directions if step.direction in (None, direction.name))
    change, value = _change(step)
    return planned.LinkStep(
        t_ns=step.at,
        link=step.link,
        directions=names,
        change=change,
        value=value,
        # The directions' errors are independent of each other.
        seeds=tuple(stream(cell.scenario.seed, "script", number, name, cell.repeat) for name in names)
        if change == "ber"
        else None,
    )


def _change(step: LinkStep) -> tuple[planned.Change, float | int | str]:
    if step.ber is not None:
        return "ber", step.ber
    if step.delay is not None:
        return "delay", step.delay
    if step.rate is not None:
        return "rate", step.rate
    assert step.state is not None  # the step's model asks for one change
    return "state", step.state


def _run(step: RunStep) -> planned.RunStep:
    return planned.RunStep(
        t_ns=step.at,
        node=step.node,
        command=step.command,
        patience_ns=step.patience,
        required=step.required,
    )
