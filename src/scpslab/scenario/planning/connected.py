"""Options of routes that no topology names: those to a link's own subnet, which the kernel makes with the address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from ipaddress import IPv4Network, ip_interface

from scpslab.plan.links import End, Link
from scpslab.plan.routes import NO_OPTIONS, RouteOptions
from scpslab.scenario.model import ScenarioFile
from scpslab.scenario.stacks import NodePlan

NONE = RouteOptions(**NO_OPTIONS)


def with_connected(links: tuple[Link, ...], hosts: Mapping[str, NodePlan], model: ScenarioFile) -> tuple[Link, ...]:
    """The links, with the options of a host's TCP at each end whose subnet has another host that it talks to."""
    subnets: dict[IPv4Network, set[str]] = {}
    for link in links:
        for end in link.ends:
            if end.ip and end.node in hosts:
                subnets.setdefault(_subnet(end.ip), set()).add(end.node)

    def at(end: End) -> End:
        if end.node not in hosts or end.ip is None or (options := hosts[end.node].route) == NONE:
            return end
        return replace(end, route=options) if _talks(model, end.node, subnets[_subnet(end.ip)]) else end

    return tuple(replace(link, ends=(at(link.ends[0]), at(link.ends[1]))) for link in links)


def _talks(model: ScenarioFile, node: str, neighbours: set[str]) -> bool:
    """Whether a host talks to a neighbour.

    What commands do nobody knows: with a script or services, or without workloads, everybody may talk to everybody.
    """
    pairs = [{workload.sender, workload.receiver} for workload in model.workloads]
    if model.script or model.services or not pairs:
        return len(neighbours) > 1
    return any(node in pair and pair <= neighbours for pair in pairs)


def _subnet(cidr: str) -> IPv4Network:
    network = ip_interface(cidr).network
    assert isinstance(network, IPv4Network)  # plans have no other addresses
    return network
