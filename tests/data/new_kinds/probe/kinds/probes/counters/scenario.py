"""Kind `counters`: the packets that a node's interfaces have counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from scpslab.documents.parts import key
from scpslab.documents.quantities import Name, PositiveDuration
from scpslab.documents.yaml_lines import Problem
from scpslab.scenario.probes.base import Kind, Observer
from scpslab.scenario.probes.watched import not_a_node, speaking

from scpslab.kinds.probes.counters import plan as planned

if TYPE_CHECKING:
    from scpslab.plan.network import NetworkPlan


class Counters(Observer):
    """Samples of the counters of a node's interfaces: records/NAME.jsonl."""

    kind: Literal["counters"] = key(says="The kind of probe.", example="counters")
    name: Name | None = key(None, says="Name of the record; counters-NODE if not given.", example="sink")
    node: Name = key(says="Where.", example="ws2")
    interval: PositiveDuration = key("100 ms", says="Time between two samples.", example="100 ms")


def problems(probe: Counters, network: NetworkPlan) -> Iterator[Problem]:
    """What does not fit: a switch has no namespace of its own."""
    yield from not_a_node(probe.node, speaking(network))


def plan(name: str, probe: Counters, _network: NetworkPlan) -> planned.Counters:
    """Its part of a plan."""
    return planned.Counters(name=name, node=probe.node, interval_ns=probe.interval)


KIND = Kind(model=Counters, default_name=lambda probe: f"counters-{probe.node}", plan=plan, problems=problems)
