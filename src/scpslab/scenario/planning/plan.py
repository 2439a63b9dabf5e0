"""Plan: everything a cell needs, complete, in base units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, replace

from scpslab.core.seeds import stream
from scpslab.plan import Plan
from scpslab.plan.cell import CellKey, Limits
from scpslab.plan.nodes import Host, ScpsRouter
from scpslab.plan.paths import Paths
from scpslab.plan.topology.interfaces import addresses
from scpslab.plan.topology.layout import Layout, layout
from scpslab.scenario import Cell, probes, workloads
from scpslab.scenario.gateways import gateway_nodes
from scpslab.scenario.model import ScenarioFile
from scpslab.scenario.planning.connected import with_connected
from scpslab.scenario.planning.containers import DOCKER_MEMORY_MIB, with_containers
from scpslab.scenario.planning.host_gateways import plan_host_gateways
from scpslab.scenario.planning.links import with_overrides
from scpslab.scenario.planning.np import NpNetwork
from scpslab.scenario.planning.scps import ScpsAddresses, with_routes
from scpslab.scenario.planning.script import plan_script
from scpslab.scenario.planning.services import plan_services
from scpslab.scenario.planning.sources import with_sources
from scpslab.scenario.probes import name_of
from scpslab.scenario.stacks import NodePlan, plan_node
from scpslab.scenario.workloads import Setting

SECOND_NS = 10**9


def plan(cell: Cell) -> Plan:
    """The plan of a cell (docs/plan-format.md)."""
    hosts = {node.name: plan_node(cell.model.host(node.name)) for node in cell.network.nodes if node.kind == "host"}
    routers = [node.name for node in cell.network.nodes if node.kind == "scps-router"]
    scps = ScpsAddresses([*(name for name, node in hosts.items() if node.scps is not None), *routers])
    network = _configured(with_routes(with_overrides(layout(cell.network), cell), scps), hosts, cell.model)
    np = _np(network, cell, hosts, scps, routers)
    network = replace(network, nodes=tuple(_router(node, np, cell) if isinstance(node, ScpsRouter) else node for node in network.nodes))
    if cell.model.containers == "docker":
        network = replace(network, nodes=with_containers(network.nodes, cell.model.workloads, hosts, gateway_nodes(cell.model, list(hosts))))
    setting = Setting(
        paths=Paths(network.nodes, network.all_links),
        hosts=hosts,
        addresses=_addresses(cell),
        root_seed=cell.scenario.seed,
        repeat=cell.repeat,
        virtual_ns=cell.model.limits.virtual,
        folder=cell.scenario.path.parent,
        take_scps=scps.take,
        np_end=np.end,
    )
    planned = [workloads.KINDS[workload.kind].plan(workload, setting) for workload in cell.model.workloads]
    network = with_sources(network, list(zip(cell.model.workloads, planned, strict=True)), setting)
    return network.plan(
        _key(cell),
        _limits(cell),
        cell.model.containers,
        workloads=tuple(planned),
        probes=tuple(probes.KINDS[probe.kind].plan(name_of(probe), probe, network) for probe in cell.model.probes),
        script=plan_script(cell, network),
        services=plan_services(cell, plan_host_gateways(cell, setting), setting.paths),
    )


def _addresses(cell: Cell) -> dict[str, str]:
    """The address of every end that a workload can name, a host alone or with a link; a host alone has its first."""
    found: dict[str, str] = {}
    for one in addresses(cell.network):
        for word in (one.node, one.name, f"{one.node}.{one.interface}"):
            found.setdefault(word, str(one.ip.ip))
    return found


def _key(cell: Cell) -> CellKey:
    return CellKey(
        id=cell.id,
        # Without the variant: a cell is the same cell in the demo and in the whole experiment.
        scenario=cell.scenario.base_name,
        axes=dict(cell.axes),
        repeat=cell.repeat,
        kernel_seed=stream(cell.scenario.seed, "kernel", cell.id),
    )


def _limits(cell: Cell) -> Limits:
    limits = cell.model.limits
    return Limits(
        virtual_s=-(-limits.virtual // SECOND_NS),
        wall_s=-(-limits.wall // SECOND_NS),
        memory_mib=(limits.memory >> 20) + (DOCKER_MEMORY_MIB if cell.model.containers == "docker" else 0),
        late_ns=limits.lateness,
    )


def _configured(network: Layout, hosts: Mapping[str, NodePlan], model: ScenarioFile) -> Layout:
    """The network with the hosts' stacks, kernel settings and route options."""
    serial_links = []
    for link in network.serial_links:
        first, second = (replace(end, route=hosts[end.node].route_options()) if end.node in hosts else end for end in link.ends)
        serial_links.append(replace(link, ends=(first, second)))
    nodes = tuple(_host(node, hosts[node.name]) if isinstance(node, Host) else node for node in network.nodes)
    return replace(network, nodes=nodes, links=with_connected(network.links, hosts, model), serial_links=tuple(serial_links))


def _np(network: Layout, cell: Cell, hosts: Mapping[str, NodePlan], scps: ScpsAddresses, routers: list[str]) -> NpNetwork:
    """The nodes that speak SCPS-NP; a host has as many programs as workloads."""
    ends = Counter(end for workload in cell.model.workloads for end in (workload.sender, workload.receiver))
    programs = {name: ends[name] for name, node in hosts.items() if node.np_precedence is not None}
    return NpNetwork(network, scps.numbers, programs | dict.fromkeys(routers, 1), tuple(routers))


def _router(node: ScpsRouter, np: NpNetwork, cell: Cell) -> ScpsRouter:
    return np.router(node, cell.model.router(node.name), cell.scenario.seed, cell.repeat)


def _host(node: Host, planned: NodePlan) -> Host:
    routes = tuple(replace(route, **asdict(planned.route_options())) for route in node.routes)
    return replace(node, stack=planned.stack, sysctls=planned.sysctls, routes=routes)
