"""Addresses of SCPS programs: the kernel must not own them, so each host with the stack `scps` has a prefix of its own,
routed to it.

A program takes an address of the prefix and a TUN device; the host's kernel passes packets between that device and its
links (stack/README.md).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from scpslab.plan.network import NetworkPlan
from scpslab.plan.nodes import Switch
from scpslab.plan.paths import NoPathError, Paths
from scpslab.plan.routes import NO_OPTIONS, Route

# RFC 2544's range for tests of networks: no topology uses it.
PREFIX = "198.18.{host}.0/24"
ADDRESS = "198.18.{host}.{program}"


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


def with_routes(network: NetworkPlan, scps: ScpsAddresses) -> NetworkPlan:
    """The network with every SCPS host's prefix routed to it; on the host itself what no program has is dropped, or it
    would go round in circles.
    """
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
    for cidr in cidrs:
        try:
            return paths.next_hop(node, cidr.split("/", maxsplit=1)[0]).ip
        except NoPathError:
            continue
    return None
