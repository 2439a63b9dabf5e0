"""Kind `counters`: the packets that a node's interfaces have counted."""

from __future__ import annotations

from typing import Literal

from scpslab.documents.parts import key
from scpslab.documents.quantities import Name, PositiveDuration
from scpslab.scenario.probes import Observer


class Counters(Observer, kind="counters"):
    """Samples of the counters of a node's interfaces: records/NAME.jsonl."""

    kind: Literal["counters"] = key(says="The kind of probe.", example="counters")
    name: Name | None = key(None, says="Name of the record; counters-NODE if not given.", example="sink")
    node: Name = key(says="Where.", example="ws2")
    interval: PositiveDuration = key("100 ms", says="Time between two samples.", example="100 ms")

    @property
    def default_name(self) -> str:
        """The node."""
        return f"counters-{self.node}"
