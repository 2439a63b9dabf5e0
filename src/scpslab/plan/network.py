"""The network of a plan: what is set up once for all cells on it.

It says nothing of bit errors, seeds, traffic or time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

from scpslab.plan.links import Link
from scpslab.plan.nodes import Host, Node, Router, ScpsRouter, Switch
from scpslab.plan.paths import Paths
from scpslab.plan.schema import Items, Range
from scpslab.plan.serial_links import SerialLink
from scpslab.plan.values import Label

LARGEST_MEMORY_MIB = 1 << 20
Containers = Literal["process", "docker"]
MemoryMib = Annotated[int, Range(32, LARGEST_MEMORY_MIB)]


@dataclass(frozen=True, kw_only=True)
class NetworkPlan:
    """Nodes and links, what the nodes are, and the memory of the guest. `topology` is what they were made from."""

    topology: Label
    containers: Containers
    memory_mib: MemoryMib
    nodes: Annotated[tuple[Node, ...], Items(1)]
    links: tuple[Link, ...]
    serial_links: tuple[SerialLink, ...]

    @property
    def speaking(self) -> tuple[Host | Router | ScpsRouter, ...]:
        """The nodes that have programs and addresses: all but the switches."""
        return tuple(node for node in self.nodes if not isinstance(node, Switch))

    @property
    def all_links(self) -> tuple[Link | SerialLink, ...]:
        """Links of packets, then serial links."""
        return (*self.links, *self.serial_links)

    @cached_property
    def paths(self) -> Paths:
        """The paths of packets through it."""
        return Paths(self)

    def addresses(self) -> list[tuple[str, str]]:
        """Every node with each of its addresses, prefix included."""
        return [(end.node, end.ip) for link in self.all_links for end in link.ends if end.ip]
