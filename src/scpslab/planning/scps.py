"""Addresses of SCPS programs: the kernel must not own them, so each host with the stack `scps` has a prefix of its own, routed to it.

A program takes an address of the prefix and a TUN device; the host's kernel passes packets between that device and its links (stack/README.md).
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from typing import Any

# RFC 2544's range for tests of networks: no topology uses it.
PREFIX = "198.18.{host}.0/24"
ADDRESS = "198.18.{host}.{program}"
ROUTE_OPTIONS: dict[str, None] = {"initcwnd": None, "initrwnd": None, "advmss": None, "rto_min_ms": None, "quickack": None}


class ScpsAddresses:
    """Hands out addresses and devices, one pair for each program."""

    def __init__(self, hosts: list[str]) -> None:
        self.numbers = {name: number for number, name in enumerate(hosts, start=1)}
        self._programs: Counter[str] = Counter()

    def take(self, host: str) -> dict[str, str]:
        """The address and device of the host's next program."""
        self._programs[host] += 1
        program = self._programs[host]
        return {"ip": ADDRESS.format(host=self.numbers[host], program=program), "device": f"scps{program - 1}"}


def add_routes(nodes: list[dict[str, Any]], links: list[dict[str, Any]], addresses: ScpsAddresses) -> None:
    """Routes every SCPS host's prefix to it; on the host itself what no program has is dropped, or it would go round in circles."""
    ends = [(end["node"], ipaddress.ip_interface(end["ip"])) for link in links for end in link["ends"] if end["ip"]]
    for host, number in addresses.numbers.items():
        for node in nodes:
            if node["kind"] == "switch" or not any(name == node["name"] for name, _ in ends):
                continue
            via = None if node["name"] == host else _next_hop(node, host, ends)
            if via or node["name"] == host:
                node["routes"].append({"to": PREFIX.format(host=number), "via": via, **ROUTE_OPTIONS})


def _next_hop(node: dict[str, Any], host: str, ends: list[tuple[str, Any]]) -> str | None:
    """Where a node sends packets for a host: the host itself on a common subnet, else what its routes say of the host's first address."""
    near = [here.network for name, here in ends if name == node["name"]]
    of_host = [there for name, there in ends if name == host]
    for there in of_host:
        if there.network in near:
            return str(there.ip)
    routes = [(ipaddress.ip_network("0.0.0.0/0" if route["to"] == "default" else route["to"]), route["via"]) for route in node["routes"]]
    fitting = [(network.prefixlen, via) for network, via in routes if of_host[0].ip in network]
    return max(fitting)[1] if fitting else None
