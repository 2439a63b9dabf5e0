"""From a described network to the plan's nodes and links: addresses, MACs and interface names, always the same for the
same network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scpslab.plan import links as planned
from scpslab.plan.disciplines import Queue as PlannedQueue
from scpslab.plan.disciplines import without_settings
from scpslab.plan.network import Containers, NetworkPlan
from scpslab.plan.nodes import Host, Node, Router, ScpsRouter, Switch
from scpslab.plan.routes import NO_OPTIONS, Route, RouteOptions
from scpslab.plan.serial_links import Ppp, SerialDirection, SerialEnd, SerialLink
from scpslab.plan.topology.description import Direction, Link, Network, Queue, Serial
from scpslab.plan.topology.interfaces import PPP_INTERFACE, interface, interfaces
from scpslab.plan.topology.routes import routes

# Enough for every network of the project.
MEMORY_MIB = 512


def layout(network: Network, containers: Containers = "process", memory_mib: int = MEMORY_MIB) -> NetworkPlan:
    """The network as a plan has it (docs/plan-format.md), with no kernel settings, containers or route options yet.

    Raises:
        ValueError: a route that leads nowhere, or names of nodes that are too long for interfaces.
    """
    macs = iter(range(1, 1 << 16))
    found = routes(network)
    return NetworkPlan(
        topology=network.name,
        containers=containers,
        memory_mib=memory_mib,
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
        return ScpsRouter(name=name, stack="scps", sysctls={}, routes=own)
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
        ppp=None
        if serial.is_np
        else Ppp(mru_bytes=serial.mru_bytes, asyncmap=serial.asyncmap, header_compression=serial.header_compression),
        ends=(_serial_end(link.a, link.a_ip), _serial_end(link.b, link.b_ip)),
        np_mtu_bytes=serial.mru_bytes if serial.is_np else None,
        directions=(_serial_direction(link.forward, link.a, link.b), _serial_direction(link.reverse, link.b, link.a)),
    )


def _serial_end(node: str, ip: str | None) -> SerialEnd:
    return SerialEnd(node=node, interface=PPP_INTERFACE if ip else None, ip=ip, route=RouteOptions(**NO_OPTIONS))


def _serial_direction(direction: Direction, start: str, end: str) -> SerialDirection:
    assert direction.rate_bps is not None  # Network.serial_link asks for it
    return SerialDirection(
        name=direction.name, from_=start, to=end, rate_bps=direction.rate_bps, delay_ns=direction.delay_ns
    )


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
    )


def _queue(queue: Queue) -> PlannedQueue:
    return without_settings(queue.discipline, queue.limit_bytes, queue.limit_packets, ecn=queue.ecn)
