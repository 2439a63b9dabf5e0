"""What carries transport on a host: one file a stack, and one line in the registry (plan/stacks.py), which names the
file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import BeforeValidator, Discriminator, Tag

from scpslab.core.kinds import Layer
from scpslab.plan.stacks import GONE
from scpslab.scenario.stacks.base import HostPart, Stack
from scpslab.scenario.stacks.node import NodePlan

from scpslab.kinds.stacks.kernel.scenario import KernelHost

STACKS: Layer[Stack] = Layer("stacks", "scenario")


def stack(host: Any) -> str:
    """The stack that a host names; one that names none has the kernel's, and what is no host at all is that stack's to
    refuse.
    """
    return str(host.get("stack", "kernel") if isinstance(host, dict) else getattr(host, "stack", "kernel"))


def _not_gone(host: Any) -> Any:
    """Refuses a stack of an earlier version with the reason."""
    if (name := stack(host)) in GONE:
        raise ValueError(f"found stack {name}, {GONE[name]}")
    return host


if TYPE_CHECKING:
    Host = HostPart
else:
    _tagged = tuple(Annotated[found.host, Tag(name)] for name, found in STACKS.items())
    Host = Annotated[Union[_tagged], Discriminator(stack), BeforeValidator(_not_gone)]  # noqa: UP007 (made while the program runs)


def plan_node(host: HostPart) -> NodePlan:
    """What a plan says of a host."""
    return STACKS[host.stack].plan(host)


__all__ = ["STACKS", "Host", "HostPart", "KernelHost", "NodePlan", "Stack", "plan_node"]
