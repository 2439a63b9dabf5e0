"""Plan: everything a cell needs, complete, in base units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace

from scpslab.core.seeds import stream
from scpslab.plan import Plan
from scpslab.plan.cell import CellPlan, Limits
from scpslab.plan.network import NetworkPlan
from scpslab.plan.nodes import Host, Node, ScpsRouter
from scpslab.plan.services import Daemon
from scpslab.plan.topology.interfaces import addresses
from scpslab.plan.topology.layout import layout
from scpslab.scenario import Cell, model, services
from scpslab.scenario.links import with_overrides
from scpslab.scenario.model import ScenarioFile
from scpslab.scenario.planning.connected import with_connected
from scpslab.scenario.planning.containers import DOCKER_MEMORY_MIB, with_containers
from scpslab.scenario.planning.links import plan_impairments
from scpslab.scenario.planning.np import NpNetwork
from scpslab.scenario.planning.scps import ScpsAddresses, with_routes
from scpslab.scenario.planning.script import plan_script
from scpslab.scenario.planning.sources import with_sources
from scpslab.scenario.services import Site, device_nodes
from scpslab.scenario.stacks import FORWARDING, NodePlan
from scpslab.scenario.workloads import Setting

SECOND_NS = 10**9


def plan(cell: Cell) -> Plan:
    """The plan of a cell (docs/plan-format.md)."""
    return _Point(cell).plan(cell)


def plans(cells: Iterable[Cell]) -> dict[str, Plan]:
    """The plans of cells by their ids. Repeats of a point that stand together share its network."""
    found: dict[str, Plan] = {}
    point: _Point | None = None
    for cell in cells:
        if point is None or point.model is not cell.model:
            point = _Point(cell)
        found[cell.id] = point.plan(cell)
    return found


class _Point:
    """What all repeats of a point have in common."""

    def __init__(self, cell: Cell) -> None:
        self.model = model = cell.model
        self._hosts = {node.name: model.host(node.name).plan() for node in cell.network.nodes if node.kind == "host"}
        routers = [node.name for node in cell.network.nodes if node.kind == "scps-router"]
        self._with_addresses = [*(name for name, node in self._hosts.items() if node.scps is not None), *routers]
        self._addresses = _addresses(cell)
        scps = ScpsAddresses(self._with_addresses)
        memory_mib = (model.limits.memory >> 20) + (DOCKER_MEMORY_MIB if model.containers == "docker" else 0)
        network = with_routes(with_overrides(layout(cell.network, model.containers, memory_mib), model), scps)
        network = _configured(network, self._hosts, model)
        self._np = _np(network, cell, self._hosts, scps, routers)
        if model.containers == "docker":
            network = replace(
                network,
                nodes=with_containers(
                    network.nodes,
                    model.workloads,
                    self._hosts,
                    device_nodes(model, {node.name: node.kind for node in cell.network.nodes}),
                ),
            )
        self._network = network
        # With the routes that workloads ask for, which are those of every repeat.
        self._final: NetworkPlan | None = None

    def plan(self, cell: Cell) -> Plan:
        """The plan of one repeat."""
        setting = Setting(
            paths=self._network.paths,
            hosts=self._hosts,
            addresses=self._addresses,
            root_seed=cell.scenario.seed,
            repeat=cell.repeat,
            virtual_ns=self.model.limits.virtual,
            folder=cell.scenario.path.parent,
            take_scps=ScpsAddresses(self._with_addresses).take,
            np_end=self._np.end,
        )
        planned = [workload.plan(setting) for workload in self.model.workloads]
        if self._final is None:
            self._final = with_sources(self._network, list(zip(self.model.workloads, planned, strict=True)), setting)
        network = self._final
        return Plan(
            network=network,
            cell=CellPlan(
                id=cell.id,
                # Without the variant: a cell is the same cell in the demo and in the whole experiment.
                scenario=cell.scenario.base_name,
                axes=dict(cell.axes),
                repeat=cell.repeat,
                kernel_seed=stream(cell.scenario.seed, "kernel", cell.id),
                limits=_limits(self.model.limits),
                impairments=plan_impairments(network, cell),
                workloads=tuple(planned),
                probes=tuple(probe.plan(network) for probe in self.model.probes),
                services=_services(Site(cell, setting, self._np)),
                script=plan_script(cell, network),
            ),
        )


def _addresses(cell: Cell) -> dict[str, str]:
    """The address of every end that a workload can name, a host alone or with a link; a host alone has its first."""
    found: dict[str, str] = {}
    for one in addresses(cell.network):
        for word in (one.node, one.name, f"{one.node}.{one.interface}"):
            found.setdefault(word, str(one.ip.ip))
    return found


def _services(site: Site) -> tuple[Daemon, ...]:
    """The services in the order in which they start: those of the lab's own before those of the scenario, which use
    them.
    """
    own = (daemon for kind in services.KINDS.values() for daemon in kind.of_lab(site))
    given = enumerate(site.cell.model.services)
    return (
        *own,
        *(service.plan(replace(site, number=number)) for number, service in given),
    )


def _limits(limits: model.Limits) -> Limits:
    return Limits(
        virtual_s=-(-limits.virtual // SECOND_NS), wall_s=-(-limits.wall // SECOND_NS), late_ns=limits.lateness
    )


def _configured(network: NetworkPlan, hosts: Mapping[str, NodePlan], scenario: ScenarioFile) -> NetworkPlan:
    """The network with the hosts' stacks, kernel settings and route options."""
    serial_links = []
    for link in network.serial_links:
        first, second = (replace(end, route=hosts[end.node].route) if end.node in hosts else end for end in link.ends)
        serial_links.append(replace(link, ends=(first, second)))
    nodes = tuple(_node(node, hosts) for node in network.nodes)
    return replace(
        network, nodes=nodes, links=with_connected(network.links, hosts, scenario), serial_links=tuple(serial_links)
    )


def _np(
    network: NetworkPlan, cell: Cell, hosts: Mapping[str, NodePlan], scps: ScpsAddresses, routers: list[str]
) -> NpNetwork:
    """The nodes that speak SCPS-NP; a host has as many programs as workloads."""
    ends = Counter(end for workload in cell.model.workloads for end in (workload.sender, workload.receiver))
    programs = {name: ends[name] for name, node in hosts.items() if node.np_precedence is not None}
    return NpNetwork(network, scps.numbers, programs | dict.fromkeys(routers, 1), tuple(routers))


def _node(node: Node, hosts: Mapping[str, NodePlan]) -> Node:
    if isinstance(node, Host):
        planned = hosts[node.name]
        routes = tuple(replace(route, **asdict(planned.route)) for route in node.routes)
        return replace(node, stack=planned.stack, sysctls=planned.sysctls, routes=routes)
    return replace(node, sysctls=dict(FORWARDING)) if isinstance(node, ScpsRouter) else node
