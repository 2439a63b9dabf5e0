"""Kind `queue`: the depth of a stage of a link's direction over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from scpslab.documents.parts import key
from scpslab.documents.quantities import Name, ProbeInterval
from scpslab.documents.yaml_lines import Problem
from scpslab.scenario.probes.base import Kind, Observer
from scpslab.scenario.probes.watched import not_a_direction

from scpslab.kinds.probes.queue import plan as planned

if TYPE_CHECKING:
    from scpslab.plan.network import NetworkPlan


class QueueDepth(Observer):
    """Samples of the packets in a stage of a link's direction: records/NAME.jsonl."""

    kind: Literal["queue"] = key(says="The kind of probe.", example="queue")
    name: Name | None = key(None, says="Name of the record. Default: queue-LINK-DIRECTION.", example="router-1")
    link: str = key(says="Link.", example="hop")
    direction: Name = key(says="Direction.", example="data")
    stage: Literal["queue", "delay"] = key(
        "queue",
        says="queue: stage 1, the buffer before the serialiser; delay: stage 2, the packets in propagation.",
        example="queue",
    )
    interval: ProbeInterval = key("100 ms", says="Time between two samples.", example="100 ms")


def problems(probe: QueueDepth, network: NetworkPlan) -> Iterator[Problem]:
    """What does not fit."""
    yield from not_a_direction(probe, network)
    if probe.stage == "delay" and any(link.name == probe.link and link.via is None for link in network.links):
        yield (
            ("stage",),
            (
                f"found the delay stage of {probe.link}, which has none; expected a link that goes through a "
                "switch. Use stage queue."
            ),
        )


def plan(name: str, probe: QueueDepth, _network: NetworkPlan) -> planned.QueueDepth:
    """Its part of a plan."""
    interval_ns = probe.interval
    return planned.QueueDepth(
        name=name, link=probe.link, direction=probe.direction, stage=probe.stage, interval_ns=interval_ns
    )


KIND = Kind(
    model=QueueDepth, default_name=lambda probe: f"queue-{probe.link}-{probe.direction}", plan=plan, problems=problems
)
