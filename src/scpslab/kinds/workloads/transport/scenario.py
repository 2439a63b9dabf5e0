"""Kind `transport`: a transfer whose two ends are Python classes of the user's, which make and read its datagrams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from scpslab.core.problems import Problem
from scpslab.documents.parts import key
from scpslab.documents.quantities import Port, PositiveDuration, Rate, Size
from scpslab.scenario.programs import ProgramFile, Programmed
from scpslab.scenario.workloads import REQUIRED, Surroundings, timeout_key

from scpslab.kinds.workloads.transport.plan import MOST_BYTES


class Transport(Programmed, kind="transport"):
    """A transfer whose sender and receiver are yours: a Python file decides what every datagram holds, when it is sent,
    and what the receiver makes of it ([policies](policies.md#write-both-ends)).
    """

    named_by: ClassVar = "program"

    kind: Literal["transport"] = key(says="The kind of workload.", example="transport")
    program: ProgramFile = key(
        says="The Python file with the classes Sender and Receiver, in the folder of the scenario file.",
        example="transport.py",
    )
    size: Size = key(says="Bytes to send, at most 4 MB.", example="100 kB")
    packet: Size = key("1000 B", says="IP length of the largest packet, headers included.", example="1000 B")
    buffer: Size = key(
        "1 MB", says="What may wait at the receiver to be read; datagrams beyond it are dropped.", example="10 kB"
    )
    read_rate: Rate | None = key(
        None, says="How fast the receiver reads its datagrams. Default: at once.", example="200 kbit/s"
    )
    port: Port = key(5004, says="UDP port.", example=5004)
    timeout: PositiveDuration = timeout_key("300 s")
    required: bool = REQUIRED

    def problems(self, around: Surroundings) -> Iterator[Problem]:
        """What does not fit."""
        if self.size > MOST_BYTES:
            yield Problem(("size",), f'"{self.size.text}"', f"at most {MOST_BYTES} B", "Send less.")
        yield from super().problems(around)
