"""Kind `burst`: a number of datagrams at a rate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from scpslab.core.problems import Problem
from scpslab.documents.parts import key
from scpslab.documents.quantities import Port, Rate, Size
from scpslab.scenario.workloads import Surroundings, Traffic


class Burst(Traffic, kind="burst"):
    """Datagrams over UDP, counted where they arrive."""

    kind: Literal["burst"] = key(says="The kind of workload.", example="burst")
    datagrams: int = key(says="How many.", least=1, most=10_000, example=20)
    packet: Size = key("500 B", says="IP packet size.", example="500 B")
    rate: Rate = key(says="How fast.", example="1 Mbit/s")
    port: Port = key(5050, says="UDP port.", example=5050)
    required: bool = key(True, says="Whether the cell waits for it.", example=True)

    def problems(self, around: Surroundings) -> Iterator[Problem]:
        """What does not fit."""
        if self.packet > around.mtu_bytes:
            expected = f"at most the MTU of {around.mtu_bytes} B"
            yield Problem(("packet",), f'"{self.packet}"', expected, "Correct the value.")
