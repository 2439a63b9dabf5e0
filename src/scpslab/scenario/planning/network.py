"""A network as a cell needs it: options of routes, addresses of SCPS programs, routes of ends that name a link, images
of containers, and what nodes that speak SCPS-NP know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from ipaddress import IPv4Network

from scpslab.core.installation import version
from scpslab.core.names import node_and_link
from scpslab.plan.links import End, Link
from scpslab.plan.network import NetworkPlan
from scpslab.plan.nodes import Container, Host, Node, Router, ScpsRouter, Switch
from scpslab.plan.paths import NoPathError, Paths, parsed
from scpslab.plan.routes import NO_OPTIONS, Route
from scpslab.plan.workloads import Traffic as Planned
from scpslab.scenario.model import ScenarioFile
from scpslab.scenario.np import ADDRESS
from scpslab.scenario.stacks import NO_ROUTE_OPTIONS, STACKS, NodePlan
from scpslab.scenario.workloads import Setting, Traffic, Workload


def with_connected(links: tuple[Link, ...], hosts: Mapping[str, NodePlan], model: ScenarioFile) -> tuple[Link, ...]:
    """The links, with the options of a host's TCP at each end whose subnet has another host that it talks to."""
    options = {name: host.route for name, host in hosts.items()}
    if all(of_host == NO_ROUTE_OPTIONS for of_host in options.values()):
        return links
    subnets: dict[IPv4Network, set[str]] = {}
    for link in links:
        for end in link.ends:
            if end.ip and end.node in hosts:
                subnets.setdefault(parsed(end.ip).network, set()).add(end.node)

    def at(end: End) -> End:
        if end.ip is None or options.get(end.node, NO_ROUTE_OPTIONS) == NO_ROUTE_OPTIONS:
            return end
        talks = _talks(model, end.node, subnets[parsed(end.ip).network])
        return replace(end, route=options[end.node]) if talks else end

    return tuple(replace(link, ends=(at(link.ends[0]), at(link.ends[1]))) for link in links)


def _talks(model: ScenarioFile, node: str, neighbours: set[str]) -> bool:
    """Whether a host talks to a neighbour.

    What commands do nobody knows: with events or services, or without workloads, everybody may talk to everybody.
    """
    pairs = [{workload.sender, workload.receiver} for workload in model.workloads]
    if model.events or model.services or not pairs:
        return len(neighbours) > 1
    return any(node in pair and pair <= neighbours for pair in pairs)


# RFC 2544's range for tests of networks: no topology uses it.
PREFIX = "198.18.{host}.0/24"


class ScpsAddresses:
    """Hands out addresses and devices, one pair for each program."""

    def __init__(self, hosts: list[str]) -> None:
        self.numbers = {name: number for number, name in enumerate(hosts, start=1)}
        self._programs: Counter[str] = Counter()

    def take(self, host: str) -> tuple[str, str]:
        """The address and device of the host's next program."""
        self._programs[host] += 1
        program = self._programs[host]
        return ADDRESS.format(host=self.numbers[host], program=program), f"scps{program - 1}"


def with_prefixes(network: NetworkPlan, scps: ScpsAddresses) -> NetworkPlan:
    """The network with every SCPS host's prefix routed to it; on the host itself what no program has is dropped, or it
    would go round in circles.
    """
    if not scps.numbers:
        return network
    ends: dict[str, list[str]] = {}
    for name, cidr in network.addresses():
        ends.setdefault(name, []).append(cidr)
    paths = network.paths
    nodes = list(network.nodes)
    for host, number in scps.numbers.items():
        for index, node in enumerate(nodes):
            if isinstance(node, Switch) or node.name not in ends or host not in ends:
                continue
            via = None if node.name == host else _next_hop(paths, node.name, ends[host])
            if via or node.name == host:
                nodes[index] = replace(
                    node, routes=(*node.routes, Route(to=PREFIX.format(host=number), via=via, **NO_OPTIONS))
                )
    return replace(network, nodes=tuple(nodes))


def _next_hop(paths: Paths, node: str, cidrs: list[str]) -> str | None:
    """Where a node sends packets for a host: to where its routes send those for the first of the host's addresses that
    they reach.

    A router of SCPS-NP has an address on each of its LANs, and no IP routes lead from one LAN to the other.
    """
    hops = (_by(paths, node, cidr.split("/", maxsplit=1)[0]) for cidr in cidrs)
    return next((hop for hop in hops if hop is not None), None)


def with_sources(network: NetworkPlan, pairs: list[tuple[Traffic, Planned]], setting: Setting) -> NetworkPlan:
    """The network with these routes; `pairs` are the scenario's workloads and the plan's."""
    wanted: dict[str, dict[str, Route]] = {}
    for workload, planned in pairs:
        for node, route in (*_source(workload, planned, setting), *_programs(workload, planned, network, setting)):
            wanted.setdefault(node, {})[route.to] = route
    if not wanted:
        return network
    nodes = tuple(
        node if isinstance(node, Switch) else replace(node, routes=(*node.routes, *wanted.get(node.name, {}).values()))
        for node in network.nodes
    )
    return replace(network, nodes=nodes)


def _source(workload: Traffic, planned: Planned, setting: Setting) -> Iterator[tuple[str, Route]]:
    """The route of the host that contacts the other one, if it names a link and its kernel would choose another
    address.
    """
    sends = planned.opener == planned.from_
    end, program = (workload.from_, planned.sending_program) if sends else (workload.to, planned.receiving_program)
    host, link = node_and_link(end)
    if not link or program is not None:
        return
    found = setting.paths.next_hop(host, planned.contacted_ip)
    if found.source != setting.addresses[end]:
        yield host, _route(host, planned.contacted_ip, found.ip, setting.hosts, setting.addresses[end])


def _programs(
    workload: Traffic, planned: Planned, network: NetworkPlan, setting: Setting
) -> Iterator[tuple[str, Route]]:
    """The routes to programs at ends that name a link, on every node that would send them elsewhere."""
    for end, program in ((workload.from_, planned.sending_program), (workload.to, planned.receiving_program)):
        host, link = node_and_link(end)
        if not link or program is None:
            continue
        for node in network.nodes:
            if isinstance(node, Switch) or node.name == host:
                continue
            ip = setting.addresses[end]
            via = _by(setting.paths, node.name, ip)
            if via is not None and via != _by(setting.paths, node.name, program.ip):
                yield node.name, _route(node.name, program.ip, via, setting.hosts)


def _by(paths: Paths, node: str, ip: str) -> str | None:
    try:
        return paths.next_hop(node, ip).ip
    except NoPathError:
        return None


def _route(node: str, ip: str, via: str, hosts: Mapping[str, NodePlan], src: str | None = None) -> Route:
    options = asdict(hosts[node].route) if node in hosts else NO_OPTIONS
    return Route(to=f"{ip}/32", via=via, src=src, **options)


# More than any node needs; what uses more is broken, and shall not take the lab with it.
NODE_MEMORY_BYTES, NODE_PROCESSES = 256 << 20, 128


def with_containers(
    nodes: Iterable[Node],
    workloads: tuple[Workload, ...],
    hosts: Mapping[str, NodePlan],
    gateways: Collection[str] = (),
) -> tuple[Node, ...]:
    """Every node with its `container` (docs/plan-format.md), but the switches.

    `hosts` says what is planned for the hosts, where anything is; `gateways` are the nodes that make the devices of
    one.
    """
    nodes = tuple(nodes)
    others = _ends(workloads, is_load=False)
    loads = _ends(workloads, is_load=True) - others
    mirrors = {node.mirror_to for node in nodes if isinstance(node, Switch)} - others

    def container(node: Host | Router | ScpsRouter) -> Container:
        own = hosts[node.name].image if node.name in hosts else None
        if own is not None:
            return _container(own.image, own.memory_bytes, is_admin=own.device, has_tun=own.device)
        makes_device = STACKS[node.stack].makes_device or node.name in gateways
        # For its device; and for a receive buffer that a fixed window needs, which is more than the machine allows
        # everybody.
        is_admin = makes_device or (node.name in hosts and hosts[node.name].receive_window_bytes is not None)
        image = f"scpslab/{_kind(node, node.name in mirrors, node.name in loads)}:{version()}"
        return _container(image, NODE_MEMORY_BYTES, is_admin, has_tun=makes_device)

    return tuple(node if isinstance(node, Switch) else replace(node, container=container(node)) for node in nodes)


def _container(image: str, memory_bytes: int, is_admin: bool, has_tun: bool) -> Container:
    return Container(
        image=image,
        memory_bytes=memory_bytes,
        pids=NODE_PROCESSES,
        capabilities=("NET_ADMIN",) if is_admin else (),
        devices=("/dev/net/tun",) if has_tun else (),
    )


def _ends(workloads: tuple[Workload, ...], *, is_load: bool) -> set[str]:
    chosen = [workload for workload in workloads if workload.is_load is is_load]
    return {end for workload in chosen for end in (workload.sender, workload.receiver)}


def _kind(node: Host | Router | ScpsRouter, is_mirror: bool, is_load: bool) -> str:
    if isinstance(node, (Router, ScpsRouter)):
        return "router"
    if image := STACKS[node.stack].image_folder:
        return image
    if is_load:
        return "traffic"
    return "monitor" if is_mirror else "tcp-host"
