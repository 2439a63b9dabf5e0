"""Plan: everything a cell needs, complete, in base units."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from functools import partial

from scpslab.core.seeds import BEGAN_AS, stream
from scpslab.plan import Plan
from scpslab.plan import events as planned_events
from scpslab.plan.cell import CellPlan, Impairment, Limits
from scpslab.plan.error_models import Errors
from scpslab.plan.network import NetworkPlan
from scpslab.plan.nodes import Host, Node, ScpsRouter
from scpslab.plan.profiles import Profile
from scpslab.plan.services import Daemon
from scpslab.plan.workloads import SECOND_NS
from scpslab.scenario import Cell, model, packs, services
from scpslab.scenario.cells import uncollected
from scpslab.scenario.consistency import programs_of
from scpslab.scenario.np import NpNetwork
from scpslab.scenario.planning.network import (
    ScpsAddresses,
    with_connected,
    with_containers,
    with_prefixes,
    with_sources,
)
from scpslab.scenario.services import Site, device_nodes
from scpslab.scenario.stacks import FORWARDING, NodePlan
from scpslab.scenario.workloads import Setting


def plan(cell: Cell) -> Plan:
    """The plan of a cell (docs/plan-format.md)."""
    return _Point(cell).plan(cell)


def plans(cells: Iterable[Cell]) -> dict[str, Plan]:
    """The plans of cells by their ids. Repeats of a point, and points of one shape, share their network."""
    planned: dict[str, Plan] = {}
    points: dict[tuple[int, str], _Point] = {}
    with uncollected():
        for cell in cells:
            shape = id(cell.surveyed), cell.shape
            if shape not in points:
                points[shape] = _Point(cell)
            planned[cell.id] = points[shape].plan(cell)
    return planned


class _Point:
    """What all cells of a shape have in common."""

    def __init__(self, cell: Cell) -> None:
        self.model = model = cell.model
        surveyed = cell.surveyed
        self._hosts = hosts = surveyed.hosts
        routers = [node.name for node in surveyed.network.nodes if isinstance(node, ScpsRouter)]
        self._with_addresses = [*(name for name, node in hosts.items() if node.scps is not None), *routers]
        scps = ScpsAddresses(self._with_addresses)
        network = _configured(with_prefixes(surveyed.network, scps), hosts, model)
        if pack := packs.planned(model.packages, model.programs, cell.scenario.path.parent):
            network = replace(network, pack=pack)
        self._np = _np(network, cell, scps, routers)
        if model.containers == "docker":
            devices = device_nodes(model, {node.name: node.kind for node in network.nodes})
            network = replace(network, nodes=with_containers(network.nodes, model.workloads, hosts, devices))
        self._network = network
        # The address of every end that a workload can name, a host alone or with a link; a host alone has its first.
        self._addresses: dict[str, str] = {}
        for one in surveyed.addresses:
            for word in (one.node, one.name, f"{one.node}.{one.interface}"):
                self._addresses.setdefault(word, str(one.ip.ip))
        # With the routes that workloads ask for, which are those of every repeat, but of a mix, whose files are drawn.
        self._final: NetworkPlan | None = None

    def plan(self, cell: Cell) -> Plan:
        """The plan of one repeat of a point."""
        setting = Setting(
            paths=self._network.paths,
            hosts=self._hosts,
            addresses=self._addresses,
            root_seed=cell.scenario.seed,
            repeat=cell.repeat,
            virtual_ns=self.model.limits.lab_time,
            folder=cell.scenario.path.parent,
            take_scps=ScpsAddresses(self._with_addresses).take,
            np_end=self._np.end,
        )
        pairs = [(one, planned) for one in self.model.workloads for planned in one.plans(setting)]
        if self._final is None or any(one.most > 1 for one in self.model.workloads):
            self._final = with_sources(self._network, pairs, setting)
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
                impairments=_impairments(network, cell),
                workloads=tuple(planned for _, planned in pairs),
                probes=tuple(probe.plan(network) for probe in self.model.probes),
                services=_services(Site(self.model, cell.surveyed.network, setting, self._np)),
                events=_events(cell, network),
                packets=self.model.packets or None,
            ),
        )


def _services(site: Site) -> tuple[Daemon, ...]:
    """The services in the order in which they start: those of the lab's own before those of the scenario, which use
    them.
    """
    own = (daemon for kind in services.KINDS.values() for daemon in kind.of_lab(site))
    given = enumerate(site.model.services)
    return (
        *own,
        *(service.plan(replace(site, number=number)) for number, service in given),
    )


def _limits(limits: model.Limits) -> Limits:
    return Limits(virtual_s=limits.lab_time // SECOND_NS, wall_s=limits.wall_time // SECOND_NS, late_ns=limits.lateness)


def _configured(network: NetworkPlan, hosts: Mapping[str, NodePlan], scenario: model.ScenarioFile) -> NetworkPlan:
    """The network with the hosts' route options, and the kernel settings of routers of SCPS-NP."""
    serial_links = []
    for link in network.serial_links:
        first, second = (replace(end, route=hosts[end.node].route) if end.node in hosts else end for end in link.ends)
        serial_links.append(replace(link, ends=(first, second)))
    nodes = tuple(_node(node, hosts) for node in network.nodes)
    return replace(
        network, nodes=nodes, links=with_connected(network.links, hosts, scenario), serial_links=tuple(serial_links)
    )


def _node(node: Node, hosts: Mapping[str, NodePlan]) -> Node:
    if isinstance(node, Host):
        options = asdict(hosts[node.name].route)
        return replace(node, routes=tuple(replace(route, **options) for route in node.routes))
    return replace(node, sysctls=dict(FORWARDING)) if isinstance(node, ScpsRouter) else node


def _np(network: NetworkPlan, cell: Cell, scps: ScpsAddresses, routers: list[str]) -> NpNetwork:
    """The nodes that speak SCPS-NP; a host has as many programs as transfers at most."""
    ends = programs_of(cell.model)
    programs = {name: ends[name] for name, node in cell.surveyed.hosts.items() if node.np_precedence is not None}
    return NpNetwork(network, scps.numbers, programs | dict.fromkeys(routers, 1), tuple(routers))


def _impairments(network: NetworkPlan, cell: Cell) -> tuple[Impairment, ...]:
    """What goes wrong, direction by direction."""
    impairments = []
    names = cell.surveyed.topology.streams
    for link in network.all_links:
        for direction in link.directions:
            given = cell.model.links.get(link.name, {}).get(direction.name) or model.Direction()
            at = link.name, direction.name
            place = link.name, names.get(at, direction.name)
            # A topology may have jitter of its own; a serial link has none.
            is_drawn = getattr(direction, "jitter_ns", 0) > 0 or bool(given.duplicate)
            errors, profile = _errors_over_time(given, cell)
            shaping = given.shaping()
            if errors is not None or is_drawn or profile is not None or any(shaping.values()):
                impairments.append(
                    Impairment(
                        link=link.name,
                        direction=direction.name,
                        errors=_errors(errors, cell, place) if errors is not None else None,
                        duplicate=given.duplicate or None,
                        seed=stream(cell.scenario.seed, "disorder", *place, cell.repeat) if is_drawn else None,
                        profile=profile,
                        **shaping,
                    )
                )
    return tuple(impairments)


def _errors_over_time(given: model.Direction, cell: Cell) -> tuple[model.Errors | None, Profile | None]:
    """A direction's errors, which are drawn at the largest rate of its profile, and the profile.

    Raises:
        ScenarioError: its file is not there any more.
    """
    if given.profile is None:
        return given.errors, None
    planned, profile = given.profile.plan(cell.scenario.path.parent, cell.model.limits.lab_time)
    if not profile.ber:
        return given.errors, planned
    return (given.errors or model.Errors()).at_rate(max(ber for _, ber in profile.ber)), planned


def _errors(errors: model.Errors, cell: Cell, place: tuple[str, str]) -> Errors:
    """The plan's `errors`.

    The seed depends on repeat, place, model and settings, not on the stack: what is compared meets the same errors (ADR
    0011).
    """
    settings = {BEGAN_AS.get(key, key): value for key, value in errors.settings.said().items()}
    said = BEGAN_AS.get(errors.model, errors.model), json.dumps(settings, sort_keys=True)
    seed = stream(cell.scenario.seed, "errors", *place, *said, cell.repeat)
    return errors.plan(cell.scenario.path.parent, seed)


def _events(cell: Cell, network: NetworkPlan) -> tuple[planned_events.Step, ...]:
    """The steps of a cell in the order of their times."""
    names = cell.surveyed.topology.streams

    def draw(number: int, link: str, direction: str) -> str:
        name = names.get((link, direction), direction)
        return stream(cell.scenario.seed, "script", number, name, cell.repeat)

    steps = enumerate(cell.model.events or ())
    planned = [step.plan(network, partial(draw, number)) for number, step in steps]
    return tuple(sorted(planned, key=lambda step: step.t_ns))
