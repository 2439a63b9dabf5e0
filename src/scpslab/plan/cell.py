"""Which cell a plan is of, and when it is ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from scpslab.plan.schema import Range
from scpslab.plan.values import Amount, AxisValue, CellId, KernelSeed, Label, Period, Probability

LARGEST_MEMORY_MIB = 1 << 20
# Seconds that 64 signed bits hold in nanoseconds.
LONGEST_S = 9_223_372_037

Prompt = Literal["mininet", "bash"]


@dataclass(frozen=True, kw_only=True)
class CellKey:
    """A point of the sweep and one repeat of it. `shell`: a person uses it, at Mininet's prompt or the guest's own."""

    id: CellId
    scenario: Label
    axes: dict[Label, AxisValue]
    repeat: Amount
    kernel_seed: KernelSeed
    shell: Prompt | None = None


@dataclass(frozen=True, kw_only=True)
class Limits:
    """When a cell that hangs is ended, the guest's memory, and where time is real, how late the lab may be."""

    virtual_s: Annotated[int, Range(1, LONGEST_S)]
    wall_s: Annotated[int, Range(1, LONGEST_S)]
    memory_mib: Annotated[int, Range(32, LARGEST_MEMORY_MIB)]
    tick_ns: Period | None = None
    late_ns: Period | None = None
    late_share: Probability | None = None
