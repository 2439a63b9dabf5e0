"""The plan's `services`: daemons on nodes."""

from __future__ import annotations

from scpslab import units
from scpslab.plan import services as planned
from scpslab.scenario.model import ScenarioFile


def plan_services(model: ScenarioFile) -> tuple[planned.Service, ...] | None:
    """The services in the order in which they start; None without one: a plan is part of what results are kept under."""
    return (
        tuple(
            planned.CommandService(
                name=service.name,
                node=service.node,
                command=service.command,
                ready_port=service.ready_port,
                ready_command=service.ready_command,
                patience_ns=units.parse("duration", service.patience),
            )
            for service in model.services
        )
        or None
    )
