"""Routes for ends of workloads that name a link: packets go to that address, and come back to it.

A kernel chooses the address that it sends from by the destination. So the host that contacts the other one has a route
to this one address, which says what it sends from: that holds for every program, whatever workload it is of. A `scps`
program has an address of its own, which is routed as the address would be that the end names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace

from scpslab.core.names import node_and_link
from scpslab.plan.network import NetworkPlan
from scpslab.plan.nodes import Switch
from scpslab.plan.paths import NoPathError, Paths
from scpslab.plan.routes import NO_OPTIONS, Route
from scpslab.plan.workloads import Traffic as Planned
from scpslab.scenario.stacks import NodePlan
from scpslab.scenario.workloads import Setting, Traffic


def with_sources(network: NetworkPlan, pairs: list[tuple[Traffic, Planned]], setting: Setting) -> NetworkPlan:
    """The network with these routes; `pairs` are the scenario's workloads and the plan's."""
    wanted: dict[str, dict[str, Route]] = {}
    for workload, planned in pairs:
        for node, route in (*_source(workload, planned, setting), *_programs(workload, planned, network, setting)):
            wanted.setdefault(node, {})[route.to] = route
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
