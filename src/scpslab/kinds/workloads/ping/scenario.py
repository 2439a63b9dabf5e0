"""Kind `ping`: round trips without a transport."""

from collections.abc import Iterator
from typing import Literal

from scpslab.core.problems import Problem
from scpslab.documents.parts import key
from scpslab.documents.quantities import PositiveMilliseconds, SizeOrZero
from scpslab.scenario.workloads import Surroundings, Traffic

# ping tells the time of a request from its first bytes; and what IPv4's length field leaves.
SMALLEST_BYTES, LARGEST_BYTES = 16, 65_507


class Ping(Traffic, kind="ping"):
    """ping: round-trip times without a transport.

    Attributes:
        kind: The kind of workload.
        count: Number of echo requests.
        interval: Time between two requests, in whole milliseconds.
        payload: Payload bytes of a request, 16 B to 65507 B.
        required: Whether the cell waits for the workload.
    """

    kind: Literal["ping"] = key(example="ping")
    count: int = key(10, least=1, most=1_000_000, example=10)
    interval: PositiveMilliseconds = key("1 s", example="1 s")
    payload: SizeOrZero = key("56 B", example="56 B")
    required: bool = key(True, example=True)

    def problems(self, around: Surroundings) -> Iterator[Problem]:
        """A payload that ping gives no times for or cannot send."""
        if not SMALLEST_BYTES <= self.payload <= LARGEST_BYTES:
            expected = f"{SMALLEST_BYTES} B to {LARGEST_BYTES} B"
            yield Problem(("payload",), f'"{self.payload.text}"', expected, "Correct the value.")
