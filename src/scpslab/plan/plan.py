"""The plan as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from scpslab.plan.cell import CellKey, Limits
from scpslab.plan.links import Link
from scpslab.plan.mininet import MininetScript
from scpslab.plan.nodes import Host, Node, Router, ScpsRouter, Switch
from scpslab.plan.probes import Probe
from scpslab.plan.schema import Items
from scpslab.plan.script import Step
from scpslab.plan.serial_links import SerialLink
from scpslab.plan.services import Service
from scpslab.plan.values import Label
from scpslab.plan.workloads import Workload

FORMAT: Literal[1] = 1
Containers = Literal["process", "docker"]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything a cell needs (docs/plan-format.md)."""

    format_: Literal[1] = FORMAT
    cell: CellKey
    limits: Limits
    containers: Containers
    topology: Label
    nodes: Annotated[tuple[Node, ...], Items(1)]
    links: tuple[Link, ...]
    serial_links: tuple[SerialLink, ...]
    workloads: tuple[Workload, ...]
    probes: tuple[Probe, ...]
    script: tuple[Step, ...] | None = None
    # In the order in which they start, each when the one before is ready.
    services: tuple[Service, ...] | None = None
    mininet: MininetScript | None = None

    @property
    def speaking(self) -> tuple[Host | Router | ScpsRouter, ...]:
        """The nodes that have programs and addresses: all but the switches."""
        return tuple(node for node in self.nodes if not isinstance(node, Switch))

    @property
    def all_links(self) -> tuple[Link | SerialLink, ...]:
        """Links of packets, then serial links."""
        return (*self.links, *self.serial_links)
