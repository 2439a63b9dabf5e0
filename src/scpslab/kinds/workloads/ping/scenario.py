"""Kind `ping`: round trips without a transport."""

from __future__ import annotations

from typing import Literal

from scpslab.documents.parts import key
from scpslab.documents.quantities import PositiveDuration, SizeOrZero
from scpslab.scenario.workloads import Traffic


class Ping(Traffic):
    """ping: round-trip times without a transport."""

    kind: Literal["ping"] = key(says="The kind of workload.", example="ping")
    count: int = key(10, says="Number of echo requests.", least=1, most=1_000_000, example=10)
    interval: PositiveDuration = key("1 s", says="Time between two requests.", example="1 s")
    payload: SizeOrZero = key("56 B", says="Payload bytes of a request.", example="56 B")
    required: bool = key(True, says="Whether the cell waits for the workload.", example=True)


KIND = Ping
