"""Kind `counters`: the packets that a node's interfaces have counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from scpslab.documents.parts import key
from scpslab.documents.quantities import Name, PositiveDuration
from scpslab.documents.yaml_lines import Problem
from scpslab.scenario.probes import Observer, not_a_node, speaking

if TYPE_CHECKING:
    from scpslab.plan.network import NetworkPlan


class Counters(Observer):
    """Samples of the counters of a node's interfaces: records/NAME.jsonl."""

    kind: Literal["counters"] = key(says="The kind of probe.", example="counters")
    name: Name | None = key(None, says="Name of the record; counters-NODE if not given.", example="sink")
    node: Name = key(says="Where.", example="ws2")
    interval: PositiveDuration = key("100 ms", says="Time between two samples.", example="100 ms")

    @property
    def default_name(self) -> str:
        """The node."""
        return f"counters-{self.node}"

    def problems(self, network: NetworkPlan) -> Iterator[Problem]:
        """What does not fit: a switch has no namespace of its own."""
        yield from not_a_node(self.node, speaking(network))


KIND = Counters
