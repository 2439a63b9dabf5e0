"""Networks of containerlab (`*.clab.yml`): read as a topology file, with a list of what is left out; and written."""

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
from scpslab.core.problems import KeyPath, Problem, dotted
from scpslab.documents.document import Document, read
from scpslab.documents.quantities import NAME
from scpslab.documents.yaml_lines import Form
from scpslab.plan.disciplines import FULL_PACKET_BYTES
from scpslab.plan.network import NetworkPlan
from scpslab.plan.nodes import Switch

FORM = Form("a network of containerlab", "name, topology", "docs/coming-from.md")
ADDRESS = re.compile(r"ip (?:-4 )?a(?:ddr(?:ess)?)? (?:a|add|replace) (?:dev (\S+) )?([\d.]+/\d+)(?: dev (\S+))?")
ROUTE = re.compile(r"ip (?:-4 )?r(?:oute)? (?:a|add|replace) (\S+) via ([\d.]+)(?: dev \S+)?")
FORWARDS = re.compile(r"sysctl (?:-\S+ )*net\.ipv4\.ip_forward=1")
IMAGE = "wbitt/network-multitool"
# Ends of links, and types of links, that lead out of the lab.
OUTSIDE = ("host", "mgmt-net", "macvlan")
KINDS = {"linux": "host", "bridge": "switch", "ovs-bridge": "switch"}


@dataclass
class _Node:
    kind: str
    name: str
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
        self.left_out += [dotted((*at, key)) for key in value if known and key not in known]
        return value

    def all_of(self, at: KeyPath, topology: dict[str, Any]) -> dict[str, Any]:
        """The parts of a section of `topology`, each with the keys that nodes inherit."""
        given = self.keys(at, topology.get(str(at[-1])) or {})
        return {
            name: self.keys((*at, name), part or {}, "kind", "image", "exec", "group") for name, part in given.items()
        }

    def items(self, at: KeyPath, value: object) -> list[Any]:
        """A list; missing, it is empty."""
        if not isinstance(value, list | None):
            raise self.wrong(at, value, "a list")
        return value or []

    def nodes(self, topology: dict[str, Any]) -> Iterator[tuple[str, _Node]]:
        """The nodes by name, with the addresses and routes that their commands give them."""
        parts = {at: self.all_of(("topology", at), topology) for at in ("kinds", "groups", "nodes")}
        defaults = self.keys(("topology", "defaults"), topology.get("defaults") or {}, "kind", "image", "exec", "group")
        for name, given in parts["nodes"].items():
            at: KeyPath = ("topology", "nodes", name)
            group = given.get("group", defaults.get("group"))
            grouped = parts["groups"].get(str(group), {})
            if (kind := (defaults | grouped | given).get("kind", "linux")) not in tuple(KINDS):
                raise self.wrong(at, kind, f"the kind {', '.join(KINDS)}", "Other nodes need containerlab. Remove it.")
            node = _Node(KINDS[kind], str(name).lower())
            if not re.fullmatch(NAME.pattern, node.name) or node.name in {
                str(one).lower() for one in parts["nodes"] if one != name
            }:
                raise self.wrong(at, name, f"{NAME.means}, which no other node has")
            self.left_out += [f"the name {name}: the node is called {node.name}"] if node.name != name else []
            # As containerlab does: the commands of all of them, in this order.
            whole = {"defaults": defaults, "kinds": parts["kinds"].get(kind, {}), "groups": grouped, "nodes": given}
            names = {"kinds": (kind,), "groups": (group,), "nodes": (name,)}
            for section, part in whole.items():
                place: KeyPath = ("topology", section, *names.get(section, ()), "exec")
                for number, command in enumerate(self.items(place, part.get("exec"))):
                    self._command((*place, number), str(command).strip(), node)
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
            self.left_out.append(f"{dotted(at)}: {command}")

    def links(self, topology: dict[str, Any], nodes: dict[str, _Node]) -> Iterator[tuple[list[list[str]], int]]:
        """Both ends of each link, as node and interface, and its MTU."""
        used: list[list[str]] = []
        for number, given in enumerate(self.items(("topology", "links"), topology.get("links"))):
            at: KeyPath = ("topology", "links", number)
            link = self.keys(at, given)
            ends = [_end(one) for one in self.items((*at, "endpoints"), link.get("endpoints"))]
            if (kind := link.get("type", "veth")) in OUTSIDE or any(end[0] in OUTSIDE for end in ends):
                self.left_out.append(f"{dotted(at)}: a link to the machine that runs the lab")
                continue
            if kind != "veth":
                raise self.wrong((*at, "type"), kind, "veth", "Remove the link.")
            self.keys(at, given, "endpoints", "mtu", "type")
            if len(ends) != 2 or any(len(end) != 2 or end[0] not in nodes for end in ends):
                raise self.wrong((*at, "endpoints"), link.get("endpoints"), "two of NODE:INTERFACE, such as h1:eth1")
            if again := next((":".join(end) for end in ends if end in used), None):
                raise self.wrong((*at, "endpoints"), again, "an interface that no other link has")
            used += ends
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
    given = reader.keys(("topology",), data.get("topology"), "nodes", "links", "defaults", "kinds", "groups")
    nodes = dict(reader.nodes(given))
    name = data.get("name", path.name.partition(".")[0])
    if not is_name(str(name)):
        raise reader.wrong(("name",), name, EXPECTED_NAME)
    lines, relays = [], []
    for number, (ends, mtu_bytes) in enumerate(reader.links(given, nodes), 1):
        is_switched = any(nodes[node].kind == "switch" for node, _ in ends)
        ips = [None if nodes[node].kind == "switch" else nodes[node].addresses.get(port) for node, port in ends]
        bare = [":".join(end) for end, ip in zip(ends, ips, strict=True) if not ip and nodes[end[0]].kind != "switch"]
        if bare:
            subnet = f"10.{200 + number // 256}.{number % 256}"
            given_instead = "".join(f" in place of {ip}" for ip in ips if ip)
            instead = "" if is_switched else f"; the link has {subnet}.0/30{given_instead}"
            reader.left_out.append(f"no address of {' and '.join(bare)}{instead}")
            ips = ips if is_switched else [f"{subnet}.1/30", f"{subnet}.2/30"]
        names = [nodes[node].name for node, _ in ends]
        words = [*map(repr, names), f"name={'-'.join((*names, str(number)))!r}"]
        words += [f"{side}_ip={ip!r}" for side, ip in zip("ab", ips, strict=True) if ip]
        relays += [] if is_switched else [f"relay{number}"]
        words += [] if is_switched else [f"via={relays[-1]!r}"]
        lines.append(f"    net.link({', '.join(words)}, mtu_bytes={mtu_bytes})")
    body = [f"    net = Network({str(name)!r})", *(f"    net.{node.kind}({node.name!r})" for node in nodes.values())]
    body += [*(f"    net.switch({relay!r})" for relay in relays), *lines]
    body += [f"    net.route({node.name!r}, {to!r}, {via!r})" for node in nodes.values() for to, via in node.routes]
    # What a stranger has written must not become a line of Python.
    left_out = [ascii(one)[1:-1] for one in reader.left_out]
    said = "".join(f"# Left out: {one}\n" for one in left_out)
    head = f'"""The network {name} of containerlab. Links have a relay, so that a scenario can delay them."""\n\n'
    start = "from scpslab.topology import Network, Parameters\n\nPARAMETERS = Parameters()\n\n\ndef describe(p):\n"
    return head + said + start + "\n".join([*body, "    return net"]) + "\n", left_out


def written(network: NetworkPlan) -> str:
    """A network as a file of containerlab: addresses, routes, rates and delays as commands of its nodes."""
    relays = {link.via for link in network.links}
    bridges = {node.name for node in network.nodes if isinstance(node, Switch)}
    left_out = [f"the serial line {line.name}" for line in network.serial_links]
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
            lacks = {
                "what a bridge delays": end.node in bridges and (direction.rate_bps or direction.first_delay_ns),
                "framing": direction.overhead_bytes,
                "jitter": direction.jitter_ns,
                "delay_table": direction.delay_table,
                "discipline": direction.queue and direction.queue.discipline != "drop-tail",
            }
            left_out += [f"{what} ({link.name}, {direction.name})" for what, is_there in lacks.items() if is_there]
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
    head = "".join(f"# Left out: {one}\n" for one in left_out)
    said = {"name": network.topology, "topology": {"nodes": nodes, "links": links}}
    return head + yaml.safe_dump(said, sort_keys=False, width=1000)
