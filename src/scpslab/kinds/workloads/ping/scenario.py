"""Kind `ping`: round trips without a transport."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from scpslab.core.problems import Problem
from scpslab.documents.parts import key
from scpslab.documents.quantities import PositiveMilliseconds, SizeOrZero
from scpslab.scenario.workloads import Surroundings, Traffic

# ping tells the time of a request from its first bytes; and what IPv4's length field leaves.
SMALLEST_BYTES, LARGEST_BYTES = 16, 65_507


class Ping(Traffic, kind="ping"):
    """ping: round-trip times without a transport."""

    kind: Literal["ping"] = key(says="The kind of workload.", example="ping")
    count: int = key(10, says="Number of echo requests.", least=1, most=1_000_000, example=10)
    interval: PositiveMilliseconds = key("1 s", says="Time between two requests, in whole milliseconds.", example="1 s")
    payload: SizeOrZero = key("56 B", says="Payload bytes of a request, 16 B to 65507 B.", example="56 B")
    required: bool = key(True, says="Whether the cell waits for the workload.", example=True)

    def problems(self, around: Surroundings) -> Iterator[Problem]:
        """A payload that ping gives no times for or cannot send."""
        if not SMALLEST_BYTES <= self.payload <= LARGEST_BYTES:
            expected = f"{SMALLEST_BYTES} B to {LARGEST_BYTES} B"
            yield Problem(("payload",), f'"{self.payload.text}"', expected, "Correct the value.")
