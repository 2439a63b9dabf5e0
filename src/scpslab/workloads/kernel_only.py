"""Programs that know the kernel's TCP only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from scpslab.plan.stacks import KERNEL

if TYPE_CHECKING:
    from scpslab.workloads.base import Problem, Surroundings, Traffic


def kernel_only(workload: Traffic, what: str, around: Surroundings) -> Iterator[Problem]:
    """Both hosts must have the kernel's stack; `what` is the workload in words."""
    if other := [end for end in (workload.sender, workload.receiver) if around.host(end).carrier is not KERNEL]:
        yield ("kind",), f"found {what} with the stack {around.host(other[0]).stack} on {other[0]}; expected kernel. Use kind bulk or fp, or stack kernel."
