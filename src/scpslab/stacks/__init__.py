"""What carries transport on a host: one file a stack, one line in STACKS, one member of Host.

A stack's file has the model of what a scenario says of such a host, and the function that turns it into what a plan says.
"""

from __future__ import annotations

from collections.abc import Callable

from scpslab.stacks.kernel import KernelHost, kernel_node
from scpslab.stacks.node import NodePlan

STACKS: dict[str, Callable[[KernelHost], NodePlan]] = {
    "kernel": kernel_node,
}
# With a second stack this becomes a union that `stack` tells apart.
Host = KernelHost


def plan_node(host: Host) -> NodePlan:
    """What a plan says of a host."""
    return STACKS[host.stack](host)


__all__ = ["STACKS", "Host", "NodePlan", "plan_node"]
