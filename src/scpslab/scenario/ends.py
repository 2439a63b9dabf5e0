"""The ends of workloads in a scenario's network: the addresses that they mean, and whether packets get from one to the
other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from scpslab.core.choices import one_of
from scpslab.core.names import node_and_link
from scpslab.documents.yaml_lines import KeyPath, Problem
from scpslab.plan.network import NetworkPlan
from scpslab.plan.nodes import Host
from scpslab.plan.paths import NoPathError, Paths
from scpslab.plan.topology.description import Network
from scpslab.plan.topology.interfaces import Address, addresses
from scpslab.plan.topology.layout import layout
from scpslab.plan.topology.routes import RouteError, WordError, address, routes
from scpslab.plan.ways import Way
from scpslab.plan.workloads import WORKLOADS
from scpslab.scenario.links import with_overrides
from scpslab.scenario.model import ScenarioFile
from scpslab.scenario.workloads import Workload


@dataclass(frozen=True)
class Surveyed:
    """A scenario's network with its addresses and paths."""

    hosts: tuple[str, ...]
    addresses: tuple[Address, ...]
    network: NetworkPlan

    @property
    def paths(self) -> Paths:
        """The paths of packets through it."""
        return self.network.paths

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


def survey(model: ScenarioFile, network: Network) -> Surveyed:
    """The network with the scenario's routes and links; of kernel settings it has those of hosts."""
    found = with_overrides(layout(network), model)
    nodes = tuple(
        replace(node, sysctls=model.host(node.name).plan().sysctls) if isinstance(node, Host) else node
        for node in found.nodes
    )
    hosts = tuple(node.name for node in network.nodes if node.kind == "host")
    return Surveyed(hosts, tuple(addresses(network)), replace(found, nodes=nodes))


def ends_of(workload: Workload) -> Ends:
    """A workload's ends: the host where it listens is contacted, else the one that receives."""
    listens = workload.serves()
    if listens and listens[0] == workload.sender:
        return Ends(workload.to, workload.from_, "to", "from")
    return Ends(workload.from_, workload.to, "from", "to")


def with_routes(model: ScenarioFile, network: Network) -> tuple[Network, list[Problem]]:
    """A network with the routes that a scenario states, after those of its topology; and which of all do not fit."""
    try:
        routes(network)
    except RouteError as error:
        return network, [(("topology",), f"found a topology with a wrong {error}")]
    added: list[tuple[str, str, str]] = []
    wrong: list[Problem] = []
    for node, given in (model.routes or {}).items():
        for to, via in given.items():
            try:
                routes(replace(network, routes=[(node, to, via)]))
            except RouteError as error:
                at: KeyPath = ("routes", node) if error.key == "node" else ("routes", node, to)
                word = {"node": node, "to": to, "via": via}[error.key]
                wrong.append((at, f"found {error.word.found}; {one_of(word, error.word.choices)}"))
            else:
                added.append((node, to, via))
    return replace(network, routes=[*network.routes, *added]), wrong


def end_problems(workload: Workload, surveyed: Surveyed) -> Iterator[Problem]:
    """Ends that are no hosts, have no address, or none on the link that they name."""
    addressed = list(dict.fromkeys(one.node for one in surveyed.addresses if one.node in surveyed.hosts))
    wrong = False
    for key, end in (("from", workload.from_), ("to", workload.to)):
        host, link = node_and_link(end)
        if (text := _not_an_end(end, host, link, surveyed, addressed)) is not None:
            wrong = True
            yield (key,), text
    if workload.sender == workload.receiver:
        yield ("to",), f'found "{workload.receiver}" at both ends; expected two hosts. Choose another.'
    elif not wrong:
        yield from _path_problems(workload, surveyed)


def _not_an_end(end: str, host: str, link: str, surveyed: Surveyed, addressed: list[str]) -> str | None:
    if host not in surveyed.hosts:
        return f'found "{host}"; {one_of(host, surveyed.hosts)}'
    if host not in addressed:
        return f'found "{host}", which has no address; {one_of(host, addressed)}'
    try:
        surveyed.ip(end)
    except WordError as error:
        return f'found "{end}", and {host} has no address on a link "{link}"; {one_of(end, error.choices)}'
    return None


def _path_problems(workload: Workload, surveyed: Surveyed) -> Iterator[Problem]:
    try:
        there_and_back(workload, surveyed)
    except NoPathError as error:
        found = f"found no path between {workload.sender} and {workload.receiver}: {error}"
        yield (
            ("to",),
            f"{found}; expected routes both ways. State the route of {error.node} under routes, or in the topology.",
        )


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
    return there, surveyed.paths.path(workload.receiver, workload.sender, from_ip) if WORKLOADS[
        workload.kind
    ].is_answered else None


def sources_twice(model: ScenarioFile, surveyed: Surveyed) -> Iterator[Problem]:
    """Workloads that contact one address from different ones of a host: its kernel chooses the source by the
    destination.
    """
    seen: dict[tuple[str, str], tuple[str, str]] = {}
    for index, workload in enumerate(model.workloads):
        ends = ends_of(workload)
        place = node_and_link(ends.opener)[0], surveyed.ip(ends.contacted)
        other, name = seen.setdefault(place, (ends.opener, workload.name))
        if other != ends.opener:
            found = f'found "{ends.opener}" where workload {name} has "{other}", and both contact {place[1]}'
            yield (
                ("workloads", index, ends.opener_key),
                f"{found}; expected one source for each destination of a host. Write both alike.",
            )
