"""Kind `verdicts`: what the stages of a link's direction decided of its packets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from scpslab.documents.parts import key
from scpslab.documents.quantities import Name
from scpslab.scenario.probes.base import Kind, Observer
from scpslab.scenario.probes.watched import not_a_direction

from scpslab.kinds.probes.verdicts import plan as planned

if TYPE_CHECKING:
    from scpslab.plan.network import NetworkPlan


class Verdicts(Observer):
    """One line for each packet of a direction that was lost or damaged, with the cause: records/NAME.jsonl."""

    kind: Literal["verdicts"] = key(says="The kind of probe.", example="verdicts")
    name: Name | None = key(None, says="Name of the record. Default: verdicts-LINK-DIRECTION.", example="losses")
    link: str = key(says="Link.", example="hop")
    direction: Name = key(says="Direction.", example="data")


def plan(name: str, probe: Verdicts, _network: NetworkPlan) -> planned.Verdicts:
    """Its part of a plan."""
    return planned.Verdicts(name=name, link=probe.link, direction=probe.direction)


KIND = Kind(
    model=Verdicts,
    default_name=lambda probe: f"verdicts-{probe.link}-{probe.direction}",
    plan=plan,
    problems=not_a_direction,
)
