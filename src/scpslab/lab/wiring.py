"""From a plan's links to veth pairs and the stages on them, and what the plan says beyond nodes and links."""

import itertools
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scpslab.core.addresses import subnet as subnet_of
from scpslab.lab.netlink import Netlink, inside, route_metrics
from scpslab.lab.stages import FIRST_INDEX, DirectionStages, tc_lines
from scpslab.plan import NetworkPlan
from scpslab.plan.links import Link
from scpslab.plan.mininet import SCRIPTS
from scpslab.plan.nodes import Host, Router, ScpsRouter, Switch
from scpslab.plan.paths import FORWARDS
from scpslab.plan.routes import Route, RouteOptions

FORWARDS_IPV6 = {"net.ipv6.conf.all.forwarding": "1"}
TCP_SETTINGS = Path("/proc/sys/net/ipv4")


@dataclass(frozen=True)
class Port:
    """An end of a veth pair: whose it is, and its index, which is unique in the whole lab."""

    node: str
    interface: str
    mac: str
    ip: str | None
    index: int


Leg = tuple[Port, Port]


@dataclass(frozen=True)
class Pair:
    """A link of the plan as veth pairs: one, or two where it goes via a switch."""

    link: Link
    legs: tuple[Leg, ...]


def indexed(network: NetworkPlan) -> list[Pair]:
    """The network's links as veth pairs whose interfaces have indices unique in the whole lab."""
    indices = itertools.count(FIRST_INDEX)
    pairs: list[Pair] = []
    for link in network.links:
        ends = [(end.node, end.interface, end.mac, end.ip) for end in link.ends]
        if link.via is None or link.relay_interfaces is None:
            legs = [ends]
        else:
            relays = [(link.via, name, "", None) for name in link.relay_interfaces]
            legs = [[ends[0], relays[0]], [ends[1], relays[1]]]
        pairs.append(
            Pair(link, tuple((_port(*first, next(indices)), _port(*second, next(indices))) for first, second in legs))
        )
    return pairs


def _port(node: str, interface: str, mac: str, ip: str | None, index: int) -> Port:
    return Port(node, interface, mac or f"02:fe:00:00:{index >> 8:02x}:{index & 255:02x}", ip, index)


class Wiring:
    """What a plan says beyond nodes and links: settings, neighbours and routes of the hosts, and the stages of the
    links.
    """

    def __init__(self, network: NetworkPlan, pairs: list[Pair], nodes: Mapping[str, Any]) -> None:
        self.network, self.pairs, self.nodes = network, pairs, nodes
        self.names = {end.index: end.interface for pair in pairs for leg in pair.legs for end in leg}
        self.places = {end.index: end.node for pair in pairs for leg in pair.legs for end in leg}
        self.directions = [direction for pair in pairs for direction in _directions(pair)]

    def configure(self) -> None:
        """Gives every host and router its settings, neighbours and routes."""
        # A namespace may choose unrestricted congestion controls only; in a lab that is all of them. Only the first
        # namespace can say so, and on a machine that is not the lab's own somebody else has (engine/hostlab.py).
        allowed, available = (TCP_SETTINGS / f"tcp_{kind}_congestion_control" for kind in ("allowed", "available"))
        if os.access(allowed, os.W_OK):
            allowed.write_text(available.read_text())
        self._configure_hosts()

    def pid(self, name: str) -> int | None:
        """The process whose network namespace a node is; None for switches."""
        node = self.nodes[name]
        return node.pid if node.inNamespace else None

    def behind_ports(self) -> list[tuple[str, str, str]]:
        """The hardware addresses that switches reach: the switch, its port, the address."""
        ports: dict[str, list[tuple[str, Port]]] = {node.name: [] for node in self.network.nodes}
        for first, second in (leg for pair in self.pairs for leg in pair.legs):
            ports[first.node].append((first.interface, second))
            ports[second.node].append((second.interface, first))
        switches = [node.name for node in self.network.nodes if isinstance(node, Switch)]

        def beyond(far: Port, passed: tuple[str, ...]) -> list[str]:
            if far.node not in switches:
                return [far.mac]
            on = [port for _, port in ports[far.node] if port.node not in passed]
            return [mac for port in on for mac in beyond(port, (*passed, far.node))]

        return [
            (switch, interface, mac)
            for switch in switches
            for interface, far in ports[switch]
            for mac in beyond(far, (switch,))
        ]

    def _configure_hosts(self) -> None:
        addresses, names = self._addresses(), first_addresses(self.network)
        for node in self.network.speaking:
            host = self.nodes[node.name]
            host.know(names)
            host.sysctls(node.sysctls)
            if self.network.is_ipv6 and (not isinstance(node, Host) or node.sysctls.get(FORWARDS) == "1"):
                host.sysctls(FORWARDS_IPV6)
            with inside(host.pid), Netlink() as here:
                for index, subnet in addresses[node.name]:
                    for other, ip, mac in subnet:
                        # Hosts of a script ask each other, as in Mininet.
                        if other != node.name and self.network.topology != SCRIPTS:
                            here.neighbour(index, ip, mac)
                for index, cidr, options in self._connected(node.name):
                    here.connected(index, cidr, route_metrics(options))
                for route in self._routes(node, late=False):
                    here.route(route.to, route.via, route_metrics(route), route.src)

    def _connected(self, node: str) -> list[tuple[int, str, RouteOptions]]:
        """A node's interfaces whose own subnet has route options: index, address, options."""
        ports = {
            end.interface: end.index for pair in self.pairs for leg in pair.legs for end in leg if end.node == node
        }
        ends = [end for pair in self.pairs for end in pair.link.ends if end.node == node]
        return [
            (ports[end.interface], end.ip, end.route) for end in ends if end.ip is not None and end.route is not None
        ]

    def _routes(self, node: Host | Router | ScpsRouter, late: bool) -> list[Route]:
        """A node's routes: those through a serial link (`late`) have to wait until it is up, or the others."""
        peers = {end.ip.split("/")[0] for link in self.network.serial_links for end in link.ends if end.ip is not None}
        return [route for route in node.routes if (route.via in peers) is late]

    def late_routes(self) -> dict[str, list[Route]]:
        """Routes by node that go through serial links."""
        return {node.name: self._routes(node, late=True) for node in self.network.speaking}

    def _addresses(self) -> dict[str, list[tuple[int, list[tuple[str, str, str]]]]]:
        """Per node its addressed interfaces, each with everybody (node, ip, mac) on the same subnet."""
        subnets: dict[str, list[tuple[str, str, str]]] = {}
        own: dict[str, list[tuple[int, str]]] = {node.name: [] for node in self.network.nodes}
        for pair in self.pairs:
            for leg in pair.legs:
                for end in leg:
                    if end.ip:
                        ip = end.ip.split("/")[0]
                        subnets.setdefault(subnet_of(end.ip), []).append((end.node, ip, end.mac))
                        own[end.node].append((end.index, subnet_of(end.ip)))
        return {name: [(index, subnets[subnet]) for index, subnet in places] for name, places in own.items()}

    def run_tc(self, logs: Path) -> None:
        """One `tc -batch` per namespace; the commands stay in logs/tc.log, as anybody could type them."""
        batches: dict[str, list[str]] = {}
        for direction in self.directions:
            lines = tc_lines(direction, self.names)
            for role, planned in lines.items():
                if (index := getattr(direction, role)) is not None:
                    batches.setdefault(self.places[index], []).extend(planned)
        merged: dict[str, list[str]] = {}
        for node, lines_of_node in batches.items():
            place = "" if self.pid(node) is None else node
            merged.setdefault(place, []).extend(lines_of_node)
        with (logs / "tc.log").open("w") as log:
            for place, commands in merged.items():
                # The clsact qdisc of an interface must be there before its filters, whichever direction asked first.
                ordered = sorted(dict.fromkeys(commands), key=lambda line: "clsact" not in line)
                log.writelines(f"tc {'-n ' + place + ' ' if place else ''}{line}\n" for line in ordered)
                argv = ["tc", *(["-n", place] if place else []), "-batch", "-"]
                done = subprocess.run(
                    argv, input="\n".join(ordered) + "\n", capture_output=True, text=True, check=False
                )
                if done.returncode:
                    raise OSError(done.returncode, f"tc in {place or 'the lab'}: {done.stderr.strip()}")


def first_addresses(network: NetworkPlan) -> dict[str, str]:
    """The first address of every node that has one."""
    addresses: dict[str, str] = {}
    for node, ip in network.addresses():
        addresses.setdefault(node, ip.partition("/")[0])
    return addresses


def _directions(pair: Pair) -> list[DirectionStages]:
    forward, reverse = pair.link.directions
    first, far = pair.legs[0]
    towards_first = towards_second = None
    second = far
    if len(pair.legs) == 2:
        second, beside_second = pair.legs[1]
        towards_first, towards_second = far.index, beside_second.index
    # Where a relay looks is where it gets the other direction's packets from.
    return [
        DirectionStages(pair.link.name, forward, first.index, second.index, towards_second, towards_first),
        DirectionStages(pair.link.name, reverse, second.index, first.index, towards_first, towards_second),
    ]
