"""Kind `transport`: a transfer whose two ends are Python classes of the user's, which make and read its datagrams."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from scpslab.core.problems import Problem
from scpslab.documents.parts import key
from scpslab.documents.quantities import Port, PositiveDuration, Rate, Size
from scpslab.scenario.workloads import REQUIRED, ProgramFile, Programmed, Surroundings, timeout_key

from scpslab.kinds.workloads.transport.plan import MOST_BYTES


class Transport(Programmed, kind="transport"):
    """A transfer whose sender and receiver are yours: a Python file decides what every datagram holds, when it is sent,
    and what the receiver makes of it ([policies](policies.md#write-both-ends)).

    Attributes:
        kind: The kind of workload.
        program: The Python file with the classes Sender and Receiver, in the folder of the scenario file.
        size: Bytes to send, at most 4 MB.
        packet: IP length of the largest packet, headers included.
        buffer: What may wait at the receiver to be read; datagrams beyond it are dropped.
        read_rate: How fast the receiver reads its datagrams. Default: at once.
        port: UDP port.
    """

    named_by: ClassVar = "program"

    kind: Literal["transport"] = key(example="transport")
    program: ProgramFile = key(example="transport.py")
    size: Size = key(example="100 kB")
    packet: Size = key("1000 B", example="1000 B")
    buffer: Size = key("1 MB", example="10 kB")
    read_rate: Rate | None = key(None, example="200 kbit/s")
    port: Port = key(5004, example=5004)
    timeout: PositiveDuration = timeout_key("300 s")
    required: bool = REQUIRED

    def problems(self, around: Surroundings) -> Iterator[Problem]:
        """What does not fit."""
        if self.size > MOST_BYTES:
            yield Problem(("size",), f'"{self.size.text}"', f"at most {MOST_BYTES} B", "Send less.")
        yield from super().problems(around)
