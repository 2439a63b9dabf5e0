"""Networks of containerlab (`*.clab.yml`): read as a topology file, with a list of what is left out; and written."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from scpslab.core.errors import ScenarioError
from scpslab.core.names import EXPECTED as EXPECTED_NAME
from scpslab.core.names import is_name, shown
from scpslab.core.problems import KeyPath, Problem
from scpslab.documents import Document, Form, read
from scpslab.plan.disciplines import FULL_PACKET_BYTES
from scpslab.plan.network import NetworkPlan
from scpslab.plan.nodes import Switch

FORM = Form("a network of containerlab", "name, topology", "docs/coming-from.md")
ADDRESS = re.compile(r"ip (?:-4 )?a(?:ddr(?:ess)?)? add (?:dev (\S+) )?([\d.]+/\d+)(?: dev (\S+))?")
ROUTE = re.compile(r"ip (?:-4 )?r(?:oute)? (?:add|replace) (\S+) via ([\d.]+)(?: dev \S+)?")
FORWARDS = re.compile(r"sysctl (?:-\S+ )*net\.ipv4\.ip_forward=1")
IMAGE = "wbitt/network-multitool"
KINDS = {"linux": "host", "bridge": "switch", "ovs-bridge": "switch"}


@dataclass
class _Node:
    kind: str
    addresses: dict[str, str] = field(default_factory=dict)
    routes: list[tuple[str, str]] = field(default_factory=list)


class _Reader:
    """What a file says that a topology can have; the rest is listed."""

    def __init__(self, document: Document) -> None:
        self.document, self.left_out = document, list[str]()

    def wrong(self, at: KeyPath, found: object, expected: str, advice: str = "Correct the value.") -> ScenarioError:
        """A complaint at a place."""
        return self.document.places.error([Problem(at, shown(found), expected, advice)])

    def keys(self, at: KeyPath, value: object, *known: str) -> dict[str, Any]:
        """A mapping; keys that are not known are left out, unless all may be there."""
        if not isinstance(value, dict):
            raise self.wrong(at, value, "keys with values")
        self.left_out += [".".join(map(str, (*at, key))) for key in value if known and key not in known]
        return value

    def items(self, at: KeyPath, value: object) -> list[Any]:
        """A list; missing, it is empty."""
        if not isinstance(value, list | None):
            raise self.wrong(at, value, "a list")
        return value or []

    def nodes(self, topology: dict[str, Any]) -> Iterator[tuple[str, _Node]]:
        """The nodes by name, with the addresses and routes that their commands give them."""
        defaults = self.keys(("topology", "defaults"), topology.get("defaults") or {}, "kind", "image")
        for name, given in self.keys(("topology", "nodes"), topology.get("nodes")).items():
            at: KeyPath = ("topology", "nodes", name)
            own = defaults | self.keys(at, given or {}, "kind", "image", "exec")
            if not is_name(str(name)):
                raise self.wrong(at, name, EXPECTED_NAME)
            if (kind := own.get("kind", "linux")) not in tuple(KINDS):
                raise self.wrong(at, kind, f"the kind {', '.join(KINDS)}", "Other nodes need containerlab. Remove it.")
            node = _Node(KINDS[kind])
            for number, command in enumerate(self.items((*at, "exec"), own.get("exec"))):
                self._command((*at, "exec", number), str(command).strip(), node)
            yield str(name), node

    def _command(self, at: KeyPath, command: str, node: _Node) -> None:
        if found := ADDRESS.fullmatch(command):
            try:
                ipaddress.IPv4Interface(found[2])
            except ValueError as error:
                raise self.wrong(at, found[2], "an address with its prefix, such as 10.0.0.1/24") from error
            node.addresses[found[1] or found[3] or ""] = found[2]
        elif found := ROUTE.fullmatch(command):
            node.routes.append((found[1], found[2]))
        elif FORWARDS.fullmatch(command):
            node.kind = "router"
        elif not command.startswith("ip link set "):
            self.left_out.append(f"{'.'.join(map(str, at))}: {command}")

    def links(self, topology: dict[str, Any], nodes: dict[str, _Node]) -> Iterator[tuple[list[list[str]], int]]:
        """Both ends of each link, as node and interface, and its MTU."""
        for number, given in enumerate(self.items(("topology", "links"), topology.get("links"))):
            at: KeyPath = ("topology", "links", number)
            link = self.keys(at, given, "endpoints", "mtu", "type")
            ends = [_end(one) for one in self.items((*at, "endpoints"), link.get("endpoints"))]
            if len(ends) != 2 or any(len(end) != 2 or end[0] not in nodes for end in ends):
                raise self.wrong((*at, "endpoints"), link.get("endpoints"), "two of NODE:INTERFACE, such as h1:eth1")
            if link.get("type", "veth") != "veth":
                raise self.wrong((*at, "type"), link["type"], "veth", "Remove the link.")
            if type(mtu_bytes := link.get("mtu", 1500)) is not int:
                raise self.wrong((*at, "mtu"), mtu_bytes, "a whole number")
            # Beyond that containerlab's own default would be no Ethernet of ours.
            yield ends, min(mtu_bytes, 1500)


def _end(given: object) -> list[str]:
    words = [given.get("node"), given.get("interface")] if isinstance(given, dict) else str(given).split(":")
    return [str(word) for word in words]


def topology_of(path: Path) -> tuple[str, list[str]]:
    """A file of containerlab as the text of a topology file, and what is left out of it.

    Raises:
        ScenarioError: it is none, or has nodes or links that a topology cannot have.
    """
    reader = _Reader(read(path, FORM))
    data = reader.keys((), reader.document.data, "name", "topology")
    given = reader.keys(("topology",), data.get("topology"), "nodes", "links", "defaults")
    nodes = dict(reader.nodes(given))
    name = data.get("name", path.name.partition(".")[0])
    if not is_name(str(name)):
        raise reader.wrong(("name",), name, EXPECTED_NAME)
    lines, relays = [], []
    for number, (ends, mtu_bytes) in enumerate(reader.links(given, nodes), 1):
        is_switched = any(nodes[node].kind == "switch" for node, _ in ends)
        ips = [None if nodes[node].kind == "switch" else nodes[node].addresses.get(port) for node, port in ends]
        if not is_switched and None in ips:
            subnet = f"10.{200 + number // 256}.{number % 256}"
            missing = " and ".join(f"{node}:{port}" for (node, port), ip in zip(ends, ips, strict=True) if ip is None)
            reader.left_out.append(f"no address of {missing}; the link has {subnet}.0/30")
            ips = [f"{subnet}.1/30", f"{subnet}.2/30"]
        words = [repr(node) for node, _ in ends] + [f"name={'-'.join((ends[0][0], ends[1][0], str(number)))!r}"]
        words += [f"{side}_ip={ip!r}" for side, ip in zip("ab", ips, strict=True) if ip]
        relays += [] if is_switched else [f"relay{number}"]
        words += [] if is_switched else [f"via={relays[-1]!r}"]
        lines.append(f"    net.link({', '.join(words)}, mtu_bytes={mtu_bytes})")
    body = [f"    net = Network({str(name)!r})", *(f"    net.{node.kind}({one!r})" for one, node in nodes.items())]
    body += [*(f"    net.switch({relay!r})" for relay in relays), *lines]
    body += [f"    net.route({one!r}, {to!r}, {via!r})" for one, node in nodes.items() for to, via in node.routes]
    # What a stranger has written must not become a line of Python.
    left_out = [ascii(one)[1:-1] for one in reader.left_out]
    said = "".join(f"# Left out: {one}\n" for one in left_out)
    head = f'"""The network {name} of containerlab. Links have a relay, so that a scenario can delay them."""\n\n'
    start = "from scpslab.topology import Network, Parameters\n\nPARAMETERS = Parameters()\n\n\ndef describe(p):\n"
    return head + said + start + "\n".join([*body, "    return net"]) + "\n", left_out


def written(network: NetworkPlan) -> str:
    """A network as a file of containerlab: addresses, routes, rates and delays as commands of its nodes."""
    relays = {link.via for link in network.links}
    ports: dict[str, int] = {}
    commands: dict[str, list[str]] = {node.name: [] for node in network.nodes}
    links = []
    for link in network.links:
        ends = []
        for end, direction in zip(link.ends, link.directions, strict=True):
            ports[end.node] = ports.get(end.node, 0) + 1
            port = f"eth{ports[end.node]}"
            ends.append(f"{end.node}:{port}")
            commands[end.node] += [f"ip addr add {end.ip} dev {port}"] if end.ip else []
            shape = [f"rate {direction.rate_bps}bit"] if direction.rate_bps else []
            shape += [f"delay {direction.first_delay_ns // 1000}us"] if direction.first_delay_ns else []
            if shape:
                in_flight = (direction.rate_bps or 0) * direction.first_delay_ns // (8 * 10**9)
                room = direction.queue.room_bytes + in_flight if direction.queue else 1 << 30
                words = f"{' '.join(shape)} limit {1 + room // FULL_PACKET_BYTES}"
                commands[end.node].append(f"tc qdisc add dev {port} root netem {words}")
        links.append({"endpoints": ends, "mtu": link.mtu_bytes})
    nodes: dict[str, object] = {}
    for node in network.nodes:
        if not isinstance(node, Switch):
            first = ["sysctl -w net.ipv4.ip_forward=1"] if node.kind != "host" else []
            last = [f"ip route replace {route.to} via {route.via}" for route in node.routes if route.via]
            nodes[node.name] = {"kind": "linux", "image": IMAGE, "exec": [*first, *commands[node.name], *last]}
        elif node.name not in relays:
            nodes[node.name] = {"kind": "bridge"}
    head = "".join(f"# Left out: the serial line {line.name}\n" for line in network.serial_links)
    said = {"name": network.topology, "topology": {"nodes": nodes, "links": links}}
    return head + yaml.safe_dump(said, sort_keys=False, width=1000)
