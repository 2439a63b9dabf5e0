"""From a described network to the plan's nodes and links: addresses, MACs and interface names, always the same for the same network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from scpslab.plan import Plan
from scpslab.plan import links as planned
from scpslab.plan.cell import CellKey, Limits
from scpslab.plan.disciplines import Queue as PlannedQueue
from scpslab.plan.disciplines import without_settings
from scpslab.plan.nodes import Host, Node, Router, ScpsRouter, Switch
from scpslab.plan.plan import Containers
from scpslab.plan.probes import Probe
from scpslab.plan.routes import NO_OPTIONS, Route, RouteOptions
from scpslab.plan.script import Step
from scpslab.plan.serial_links import Ppp, SerialDirection, SerialEnd, SerialLink
from scpslab.plan.services import Service
from scpslab.plan.topology.description import Direction, Link, Network, Queue, Serial
from scpslab.plan.topology.interfaces import PPP_INTERFACE, interface, interfaces
from scpslab.plan.topology.routes import routes
from scpslab.plan.workloads import Workload

# A router of SCPS-NP has one device for all that goes over IP; its datagrams pass ten routers (scps-np §8).
NP_DEVICE, NP_HOPS, NO_ADDRESS = "np0", 10, "0.0.0.0"  # noqa: S104 (nobody listens there)


@dataclass(frozen=True)
class Layout:
    """The network of a plan. As `layout` returns it, it has no errors, kernel settings or route options."""

    topology: str
    nodes: tuple[Node, ...]
    links: tuple[planned.Link, ...]
    serial_links: tuple[SerialLink, ...]

    @property
    def all_links(self) -> tuple[planned.Link | SerialLink, ...]:
        """Links of packets, then serial links."""
        return (*self.links, *self.serial_links)

    def addresses(self) -> list[tuple[str, str]]:
        """Every node with each of its addresses, prefix included."""
        return [(end.node, end.ip) for link in self.all_links for end in link.ends if end.ip]

    def plan(
        self,
        cell: CellKey,
        limits: Limits,
        containers: Containers = "process",
        workloads: tuple[Workload, ...] = (),
        probes: tuple[Probe, ...] = (),
        script: tuple[Step, ...] | None = None,
        services: tuple[Service, ...] | None = None,
    ) -> Plan:
        """The plan of a cell on this network."""
        return Plan(
            cell=cell,
            limits=limits,
            containers=containers,
            topology=self.topology,
            nodes=self.nodes,
            links=self.links,
            serial_links=self.serial_links,
            workloads=workloads,
            probes=probes,
            script=script,
            services=services,
        )


def layout(network: Network) -> Layout:
    """The network's nodes and links (docs/plan-format.md).

    Raises:
        ValueError: a route that leads nowhere, or names of nodes that are too long for interfaces.
    """
    macs = iter(range(1, 1 << 16))
    found = routes(network)
    return Layout(
        topology=network.name,
        nodes=tuple(_node(network, node.name, found) for node in network.nodes),
        links=tuple(_link(link, macs) for link in network.links if link.serial is None),
        serial_links=tuple(_serial_link(link, link.serial) for link in network.links if link.serial is not None),
    )


def _node(network: Network, name: str, found: Mapping[tuple[str, str], str]) -> Node:
    node = network.node(name)
    if node.kind == "switch":
        return Switch(name=name, mirror_to=node.mirror_to)
    own = tuple(Route(to=to, via=via, **NO_OPTIONS) for (owner, to), via in found.items() if owner == name)
    if node.kind == "scps-router":
        # Planning knows what its tables hold.
        return ScpsRouter(
            name=name,
            stack="scps",
            sysctls={},
            routes=own,
            ip=NO_ADDRESS,
            device=NP_DEVICE,
            seed=0,
            default_precedence=0,
            hop_count=NP_HOPS,
            hosts=(),
            next_hops=(),
            interfaces=(),
        )
    return (Router if node.kind == "router" else Host)(name=name, stack="kernel", sysctls={}, routes=own)


def _link(link: Link, macs: Iterator[int]) -> planned.Link:
    names = interfaces(link)
    return planned.Link(
        name=link.name,
        via=link.via,
        mtu_bytes=link.mtu_bytes,
        ends=(
            planned.End(node=link.a, interface=names[0], mac=_mac(next(macs)), ip=link.a_ip),
            planned.End(node=link.b, interface=names[1], mac=_mac(next(macs)), ip=link.b_ip),
        ),
        relay_interfaces=(interface(link.via, link.a), interface(link.via, link.b)) if link.via else None,
        directions=(_direction(link.forward, link.a, link.b), _direction(link.reverse, link.b, link.a)),
    )


def _serial_link(link: Link, serial: Serial) -> SerialLink:
    return SerialLink(
        name=link.name,
        bits_per_byte=serial.bits_per_byte,
        buffer_bytes=serial.buffer_bytes,
        vector_bits=serial.vector_bits,
        ppp=None if serial.is_np else Ppp(mru_bytes=serial.mru_bytes, asyncmap=serial.asyncmap, header_compression=serial.header_compression),
        ends=(_serial_end(link.a, link.a_ip), _serial_end(link.b, link.b_ip)),
        np_mtu_bytes=serial.mru_bytes if serial.is_np else None,
        directions=(_serial_direction(link.forward, link.a, link.b), _serial_direction(link.reverse, link.b, link.a)),
    )


def _serial_end(node: str, ip: str | None) -> SerialEnd:
    return SerialEnd(node=node, interface=PPP_INTERFACE if ip else None, ip=ip, route=RouteOptions(**NO_OPTIONS))


def _serial_direction(direction: Direction, start: str, end: str) -> SerialDirection:
    assert direction.rate_bps is not None  # Network.serial_link asks for it
    return SerialDirection(name=direction.name, from_=start, to=end, rate_bps=direction.rate_bps, delay_ns=direction.delay_ns, errors=None)


def _mac(number: int) -> str:
    return f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}"


def _direction(direction: Direction, start: str, end: str) -> planned.Direction:
    return planned.Direction(
        name=direction.name,
        from_=start,
        to=end,
        rate_bps=direction.rate_bps,
        overhead_bytes=direction.overhead_bytes,
        queue=_queue(direction.queue or Queue()) if direction.rate_bps is not None else None,
        delay_ns=direction.delay_ns,
        delay_table=None,
        disorder=None,
        errors=None,
    )


def _queue(queue: Queue) -> PlannedQueue:
    return without_settings(queue.discipline, queue.limit_bytes, queue.limit_packets, ecn=queue.ecn)
