"""What carries transport on a host: one file a stack, one line in STACKS, one member of Host.

A stack's file has the model of what a scenario says of such a host, and the function that turns it into what a plan says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Discriminator, Tag

from scpslab.stacks.image import ImageHost, image_node
from scpslab.stacks.kernel import KernelHost, kernel_node
from scpslab.stacks.node import NodePlan
from scpslab.stacks.scps import ScpsHost, scps_node

STACKS: dict[str, Callable[[Any], NodePlan]] = {
    "image": image_node,
    "kernel": kernel_node,
    "scps": scps_node,
}


def stack(host: Any) -> str:
    """The stack that a host names; one that names none has the kernel's, and what is no host at all is that stack's to refuse."""
    return str(host.get("stack", "kernel") if isinstance(host, dict) else getattr(host, "stack", "kernel"))


Host = Annotated[
    Annotated[KernelHost, Tag("kernel")] | Annotated[ScpsHost, Tag("scps")] | Annotated[ImageHost, Tag("image")],
    Discriminator(stack),
]


def plan_node(host: KernelHost | ScpsHost | ImageHost) -> NodePlan:
    """What a plan says of a host."""
    return STACKS[host.stack](host)


__all__ = ["STACKS", "Host", "ImageHost", "KernelHost", "NodePlan", "ScpsHost", "plan_node"]
