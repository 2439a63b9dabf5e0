"""Plan: everything a cell needs, complete, in base units."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from ipaddress import ip_address, ip_network
from itertools import islice

from scpslab.core.addresses import alone
from scpslab.core.installation import version
from scpslab.core.names import node_and_link
from scpslab.core.problems import Problem
from scpslab.core.seeds import BEGAN_AS, stream
from scpslab.plan import Plan
from scpslab.plan import events as planned_events
from scpslab.plan.cell import CellPlan, Impairment, Limits
from scpslab.plan.chances import chances
from scpslab.plan.error_models import Errors
from scpslab.plan.events import RouteStep
from scpslab.plan.links import End, Link
from scpslab.plan.network import NetworkPlan
from scpslab.plan.nodes import Container, Host, Node, Router, ScpsRouter, Switch
from scpslab.plan.paths import Hop, NoPathError, Paths, Prefix, fewest, parsed
from scpslab.plan.profiles import Profile
from scpslab.plan.routes import NO_OPTIONS, Route
from scpslab.plan.serial_links import SerialLink
from scpslab.plan.services import Daemon
from scpslab.plan.workloads import SECOND_NS
from scpslab.plan.workloads import Traffic as Planned
from scpslab.scenario import Cell, model, packs, services
from scpslab.scenario.cells import cell_id, uncollected
from scpslab.scenario.consistency import programs_of
from scpslab.scenario.model import ScenarioFile
from scpslab.scenario.services import ADDRESS, NpNetwork, Site, device_nodes
from scpslab.scenario.stacks import FORWARDING, NO_ROUTE_OPTIONS, STACKS, NodePlan
from scpslab.scenario.workloads import Setting, Traffic, Workload


def with_connected(links: tuple[Link, ...], hosts: Mapping[str, NodePlan], model: ScenarioFile) -> tuple[Link, ...]:
    """The links, with the options of a host's TCP at each end whose subnet has another host that it talks to."""
    options = {name: host.route for name, host in hosts.items()}
    if all(of_host == NO_ROUTE_OPTIONS for of_host in options.values()):
        return links
    subnets: dict[Prefix, set[str]] = {}
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
    return Route(to=alone(ip), via=via, src=src, **options)


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


# When a direction is up, and when not, from then on.
States = tuple[tuple[int, bool], ...]
MOST_STEPS = 10_000


def contact_steps(network: NetworkPlan, states: Mapping[tuple[str, str], States]) -> Iterator[RouteStep]:
    """The changes of routes, in the order of their times."""
    paths, nodes = network.paths, {node.name: node for node in network.speaking}
    hops = [Hop(link, direction) for link in network.all_links for direction in link.directions]
    goals = [(name, *lead) for name in network.hosts for lead in _leading_to(network, name)]
    planned: dict[tuple[str, str, str], tuple[Route, list[Hop]]] = {}
    for node, own_node in nodes.items():
        for goal, prefix, ip in (one for one in goals if one[0] != node):
            with suppress(NoPathError):
                hop = paths.next_hop(node, ip)
                route = Route(
                    to=prefix,
                    via=hop.ip,
                    src=hop.source if isinstance(own_node, Host) and prefix == alone(ip) else None,
                    **_options(own_node, hop.link, ip),
                )
                planned[node, goal, prefix] = route, paths.path(node, goal, ip)
    last = {key: route for key, (route, _) in planned.items()}
    passing = [name for name in (node.name for node in network.nodes) if paths.forwards(name)]
    for t_ns in sorted({0, *(t_ns for steps in states.values() for t_ns, _ in steps)}):
        up = {hop.place for hop in hops if _is_up(states.get(hop.place, ()), t_ns)}
        for (node, goal, prefix), (own, way) in planned.items():
            steps = ((hop.direction.from_, hop.direction.to, hop) for hop in hops if hop.place in up)
            through = (one for one in steps if one[0] in (node, *passing))
            is_own = all(hop.place in up for hop in way)
            via = own.via if is_own else _next(fewest(through, node, goal), nodes)
            if via is None or via == last[node, goal, prefix].via:
                continue
            last[node, goal, prefix] = route = replace(own, via=via)
            # A route of the network's own with this prefix was replaced, and is put back.
            same = next((one for one in reversed(nodes[node].routes) if one.to == prefix), None)
            kept = same if is_own else route
            yield RouteStep(t_ns=t_ns, node=node, route=kept or route, holds=kept is not None)


def _is_up(steps: States, t_ns: int) -> bool:
    return next((is_up for at_ns, is_up in reversed(steps) if at_ns <= t_ns), True)


def _leading_to(network: NetworkPlan, host: str) -> list[tuple[str, str]]:
    """What leads to a host: each of its addresses, and the prefix of its SCPS programs, with an address of each."""
    own = (parsed(cidr).ip for name, cidr in network.addresses() if name == host)
    dropped = (ip_network(route.to) for route in network.hosts[host].routes if route.via is None)
    return [*((alone(ip), str(ip)) for ip in own), *((str(to), str(to[1])) for to in dropped)]


def _options(node: Host | Router | ScpsRouter, link: Link | SerialLink, ip: str) -> dict[str, int | None]:
    """What the node's route to an address says besides."""
    fitting = [one for one in node.routes if one.to == "default" or ip_address(ip) in ip_network(one.to)]
    longest = max(fitting, key=lambda one: 0 if one.to == "default" else ip_network(one.to).prefixlen, default=None)
    given = longest or next((end.route for end in link.ends if end.node == node.name), None)
    return {name: getattr(given, name, None) for name in NO_OPTIONS}


def _next(way: Iterable[Hop], nodes: Collection[str]) -> str | None:
    """The address of the first node on a way that is no switch."""
    ends = (end for hop in way for end in hop.link.ends if end.node == hop.direction.to and end.node in nodes)
    return next((str(parsed(end.ip).ip) for end in ends if end.ip), None)


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
        """The plan of one repeat of a point. Where nothing is drawn, each is the first under a name of its own."""
        planned = self._drawn(cell)
        if cell.repeat == 1 or chances(planned):
            return planned
        first = self._drawn(replace(cell, id=cell_id(cell.axes, 1), repeat=1))
        return replace(first, cell=replace(first.cell, id=cell.id, repeat=cell.repeat))

    def _drawn(self, cell: Cell) -> Plan:
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
    return (*own, *(service.plan(replace(site, number=number)) for number, service in given))


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
    return (*sorted(planned, key=lambda step: step.at_ns), *_reroutes(cell, network))


def _reroutes(cell: Cell, network: NetworkPlan) -> tuple[planned_events.RouteStep, ...]:
    """The changes of routes that follow contacts.

    Raises:
        ScenarioError: they are too many.
    """
    if cell.model.routing is None:
        return ()
    states, until_ns = {}, cell.model.limits.lab_time
    for link, directions in cell.model.links.items():
        for name, given in directions.items():
            if given.profile is not None:
                _, profile = given.profile.plan(cell.scenario.path.parent, until_ns)
                states[link, name] = profile.until(until_ns).up
    steps = tuple(islice(contact_steps(network, states), MOST_STEPS + 1))
    if len(steps) > MOST_STEPS:
        found = f"more than {MOST_STEPS} changes of routes"
        raise cell.places.error([Problem(("routing",), found, "fewer", "Lower limits.lab_time.")])
    return steps
