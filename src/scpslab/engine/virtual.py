"""Engine `virtual`: the lab kernel with virtual time. Deterministic: the same plan gives the same bytes."""

from __future__ import annotations

from typing import ClassVar

from scpslab.engine.uml import UmlEngine


class VirtualEngine(UmlEngine):
    """Time jumps to the next timer when every task sleeps; computing takes no time."""

    name: ClassVar[str] = "virtual"
    deterministic: ClassVar[bool] = True
    clock_arguments: ClassVar[list[str]] = ["time-travel=inf-cpu", "time-travel-start=1700000000000000000"]
