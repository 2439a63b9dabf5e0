"""A scenario's network as far as it is known before traffic is planned: addresses, links, stacks of hosts, paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from scpslab.core.choices import choice
from scpslab.core.names import node_and_link
from scpslab.core.problems import KeyPath, Problem
from scpslab.documents.quantities import Packets, Products
from scpslab.plan import links
from scpslab.plan.disciplines import FULL_PACKET_BYTES
from scpslab.plan.disciplines import Queue as PlannedQueue
from scpslab.plan.network import NetworkPlan
from scpslab.plan.nodes import Host
from scpslab.plan.paths import Paths, Way
from scpslab.plan.places import listed
from scpslab.plan.serial_links import SerialLink
from scpslab.plan.topology import Network
from scpslab.plan.topology.routes import Address, RouteError, address, addresses, routed
from scpslab.plan.workloads import WORKLOADS
from scpslab.scenario.model import Direction, Queue, ScenarioFile
from scpslab.scenario.stacks import NodePlan
from scpslab.scenario.workloads import Workload

T = TypeVar("T")
# What a guest needs besides for dockerd, and the images in its memory.
DOCKER_MEMORY_MIB = 1280


@dataclass(frozen=True)
class Surveyed:
    """A scenario's network with its addresses and paths, and what is planned for its hosts.

    The network has the scenario's routes and links, and the stacks and kernel settings of hosts; `topology` is what it
    was made from.
    """

    topology: Network
    network: NetworkPlan
    addresses: tuple[Address, ...]
    hosts: Mapping[str, NodePlan]

    @property
    def paths(self) -> Paths:
        """The paths of packets through it."""
        return self.network.paths

    def with_links(self, model: ScenarioFile) -> Surveyed:
        """The same with what a scenario says of directions."""
        if not model.links:
            return self
        links = tuple(_link(link, model) for link in self.topology.links)
        lines = tuple(_line(line, model) for line in self.topology.serial_links)
        return replace(self, network=replace(self.network, links=links, serial_links=lines))

    def ip(self, end: str) -> str:
        """The address that an end means: the host's first, where it names no link."""
        return str(address(self.addresses, end).ip.ip)


@dataclass(frozen=True)
class Ends:
    """A workload's two ends: who contacts whom, as the scenario writes them, and the keys that do."""

    opener: str
    contacted: str
    opener_key: str
    contacted_key: str


def survey(model: ScenarioFile, topology: Network) -> tuple[Surveyed, list[Problem]]:
    """The network of a scenario without what it says of links, and which of its routes do not fit."""
    topology = topology.in_ipv6() if model.addresses == "ipv6" else topology
    memory_mib = (model.limits.memory >> 20) + (DOCKER_MEMORY_MIB if model.containers == "docker" else 0)
    wrong: list[Problem] = []
    try:
        network = topology.plan(model.containers, memory_mib)
    except RouteError as error:
        network = replace(topology, routes=[]).plan(model.containers, memory_mib)
        found = f"a topology with a wrong {error.route}: found {error.error.found}"
        wrong.append(Problem(("topology",), found, f"one of {listed(error.error.choices)}", "Correct it."))
    for node, given in (model.routes or {}).items():
        for to, via in given.items():
            try:
                network = routed(network, [(node, to, via)])
            except RouteError as error:
                at: KeyPath = ("routes", node) if error.key == "node" else ("routes", node, to)
                word = dict(zip(("node", "to", "via"), error.words, strict=True))[error.key]
                wrong.append(Problem(at, error.error.found, *choice(word, error.error.choices)))
    hosts = {node.name: model.host(node.name).planned for node in network.nodes if isinstance(node, Host)}
    nodes = tuple(
        replace(node, stack=hosts[node.name].stack, sysctls=hosts[node.name].sysctls)
        if isinstance(node, Host)
        else node
        for node in network.nodes
    )
    network = replace(network, nodes=nodes)
    return Surveyed(topology, network, tuple(addresses(network)), hosts), wrong


def ends_of(workload: Workload) -> Ends:
    """A workload's ends: the host where it listens is contacted, else the one that receives."""
    listens = workload.serves()
    if listens and listens[0] == workload.sender:
        return Ends(workload.to, workload.from_, "to", "from")
    return Ends(workload.from_, workload.to, "from", "to")


def there_and_back(workload: Workload, surveyed: Surveyed) -> tuple[Way, Way | None]:
    """The hops of a workload's packets from its sending host to its receiving one, and back (None: nobody answers).

    Raises:
        NoPathError: they do not arrive.
    """
    ends = ends_of(workload)
    contacted_ip = surveyed.ip(ends.contacted)
    opener, link = node_and_link(ends.opener)
    opener_ip = surveyed.ip(ends.opener) if link else surveyed.paths.source(opener, contacted_ip)
    from_ip, to_ip = (opener_ip, contacted_ip) if ends.opener_key == "from" else (contacted_ip, opener_ip)
    there = surveyed.paths.path(workload.sender, workload.receiver, to_ip)
    is_answered = WORKLOADS[workload.kind].is_answered
    return there, surveyed.paths.path(workload.receiver, workload.sender, from_ip) if is_answered else None


def _link(link: links.Link, model: ScenarioFile) -> links.Link:
    """A link of the topology with what the scenario says of its directions, but for what goes wrong there. Queues of
    one product have that of the scenario's rates and delays.
    """
    given = model.links.get(link.name, {})
    first, second = (_direction(one, given.get(one.name)) for one in link.directions)
    sized = replace(link, directions=(first, second)).sized()
    first, second = (_queued(one, given.get(one.name), sized.rtt_ns) for one in sized.directions)
    return replace(sized, directions=(first, second))


def _line(line: SerialLink, model: ScenarioFile) -> SerialLink:
    given = model.links.get(line.name, {})
    first, second = (
        _over(one, rate_bps=said.rate, delay_ns=said.delay) if (said := given.get(one.name)) else one
        for one in line.directions
    )
    return replace(line, directions=(first, second))


def _over(planned: T, **given: object) -> T:
    """A part of a plan with what is given on top of it, which None is not."""
    return replace(planned, **{name: value for name, value in given.items() if value is not None})  # type: ignore[type-var]


def _direction(planned: links.Direction, given: Direction | None) -> links.Direction:
    if given is None:
        return planned
    over = _over(
        planned, rate_bps=given.rate, overhead_bytes=given.overhead, delay_ns=given.delay, jitter_ns=given.jitter
    )
    return _over(over, delay_table=_delay_table(given, over.delay_ns) if given.delay_table else None)


def _queued(planned: links.Direction, given: Direction | None, rtt_ns: int) -> links.Direction:
    if given is None or given.queue is None:
        return planned
    product = planned.rate_bps or 0, rtt_ns
    return replace(planned, queue=_plan_queue(planned.queue or PlannedQueue(), given.queue, product))


def _delay_table(given: Direction, delay_ns: int) -> tuple[tuple[int, int], ...]:
    steps = tuple((step.at, step.delay) for step in given.delay_table or ())
    return steps if steps[0][0] == 0 else ((0, delay_ns), *steps)


def _plan_queue(planned: PlannedQueue, given: Queue, product: tuple[int, int]) -> PlannedQueue:
    """The topology's queue with the scenario's words on top, and every number that its discipline needs; `product`: the
    rate and the round trip.
    """
    limit, limits = given.limit, (planned.limit_bytes, planned.limit_packets)
    if isinstance(limit, Packets):
        limits = None, limit
    elif isinstance(limit, Products):
        # Without a rate or a delay it cannot be: `consistency` says so.
        limits = limit.of_bytes(*product) if all(product) else FULL_PACKET_BYTES, None
    elif limit is not None:
        limits = limit, None
    queue = replace(planned, limit_bytes=limits[0], limit_packets=limits[1])
    queue = _over(queue, discipline=given.discipline, ecn=given.ecn)
    return replace(queue, settings=given.of(queue.discipline).settings(queue))
