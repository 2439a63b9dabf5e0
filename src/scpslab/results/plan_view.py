"""What an analysis reads of a cell's plan: the parts of plan.json that say where to look for what.

A reader's view, not the plan itself: keys that no metric or figure uses are ignored. The whole format is docs/plan-format.md.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class _View(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class CellKey(_View):
    """Which cell this is: a point of the sweep, one repeat, one seed."""

    id: str
    scenario: str
    axes: dict[str, str | float | int | bool] = Field(default_factory=dict)
    repeat: int = 1
    kernel_seed: str = ""


class Node(_View):
    """A host, router or switch; `mirror_to` names the host that sees every frame of a switch."""

    name: str
    kind: str = "host"
    stack: str = "kernel"
    sysctls: dict[str, Any] = Field(default_factory=dict)
    mirror_to: str | None = None


class End(_View):
    """Where a link meets a node."""

    node: str
    interface: str = ""
    ip: str | None = None


class Direction(_View):
    """One direction of a link; rate in bit/s (None: not limited), framing in bytes per packet."""

    name: str
    source: str = Field(alias="from")
    destination: str = Field(alias="to")
    rate_bps: int | None = None
    overhead_bytes: int = 0


class Link(_View):
    """Two ends and two directions; `via` names the switch where the delay lives."""

    name: str
    via: str | None = None
    ends: tuple[End, ...] = ()
    directions: tuple[Direction, ...] = ()


class Workload(_View):
    """Something that generates traffic; `settings` keeps the keys of its kind."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str
    kind: str
    source: str = Field(alias="from")
    destination: str = Field(alias="to")
    to_ip: str | None = None
    port: int | None = None
    start_ns: int = 0
    required: bool = True
    congestion: str | None = None


class Probe(_View):
    """Something that observes: a capture has a node, a queue or verdict log a link and a direction."""

    name: str
    kind: str
    node: str | None = None
    interface: str | None = None
    link: str | None = None
    direction: str | None = None
    stage: str | None = None


class PlanView(_View):
    """The plan of one cell as an analysis sees it."""

    format: int
    cell: CellKey
    topology: str = ""
    nodes: tuple[Node, ...] = ()
    links: tuple[Link, ...] = ()
    serial_links: tuple[Link, ...] = ()
    workloads: tuple[Workload, ...] = ()
    probes: tuple[Probe, ...] = ()

    def path(self, source: str, destination: str) -> list[tuple[Link, Direction]]:
        """The link directions a packet takes between two nodes (fewest links; empty when there is no way)."""
        reached: dict[str, list[tuple[Link, Direction]]] = {source: []}
        frontier = [source]
        while frontier:
            here = frontier.pop(0)
            for link in (*self.links, *self.serial_links):
                for direction in link.directions:
                    if direction.source == here and direction.destination not in reached:
                        reached[direction.destination] = [*reached[here], (link, direction)]
                        frontier.append(direction.destination)
        return reached.get(destination, [])

    def bottleneck(self, source: str, destination: str) -> tuple[Link, Direction] | None:
        """The slowest direction on the way: the hop whose rate throughput is compared with."""
        limited = [(link, direction) for link, direction in self.path(source, destination) if direction.rate_bps]
        return min(limited, key=lambda pair: pair[1].rate_bps or 0, default=None)

    def capture_at(self, node: str) -> Probe | None:
        """The capture probe on a host itself, if there is one."""
        return next((probe for probe in self.probes if probe.kind == "capture" and probe.node == node), None)

    def capture_near(self, node: str) -> Probe | None:
        """The capture that sees a host's packets as the host sends them: on the host, or on the monitor of its switch."""
        return self.capture_at(node) or self.capture_beside(node)

    def capture_beside(self, node: str) -> Probe | None:
        """The capture on the monitor of a host's switch, which sees the traffic of all hosts there."""
        for link in self.links:
            for direction in link.directions:
                if direction.source != node:
                    continue
                switch = next((item for item in self.nodes if item.name == direction.destination), None)
                if switch and switch.mirror_to and (monitor := self.capture_at(switch.mirror_to)):
                    return monitor
        return None
