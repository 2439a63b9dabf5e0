"""Kind `queue`: the depth of a stage of a link's direction over time."""

from __future__ import annotations

from typing import Literal

from scpslab.documents.parts import key
from scpslab.documents.quantities import Name, ProbeInterval
from scpslab.scenario.probes import AtDirection


class QueueDepth(AtDirection, kind="queue"):
    """Samples of the packets in a stage of a link's direction: records/NAME.jsonl."""

    kind: Literal["queue"] = key(says="The kind of probe.", example="queue")
    name: Name | None = key(None, says="Name of the record. Default: queue-LINK-DIRECTION.", example="router-1")
    link: str = key(says="Link.", example="hop")
    direction: Name = key(says="Direction.", example="forward")
    stage: Literal["queue", "delay"] = key(
        "queue",
        says="queue: stage 1, the buffer before the serialiser; delay: stage 2, the packets in propagation.",
        example="queue",
    )
    interval: ProbeInterval = key("100 ms", says="Time between two samples.", example="100 ms")
