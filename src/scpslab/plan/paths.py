"""Ways through a plan's network, and the path of packets, from node to node as the routes say: what the kernels of the
lab will do, worked out beforehand.
"""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias, TypeVar

from scpslab.plan.links import Direction, Link
from scpslab.plan.nodes import Host, Node, ScpsRouter, Switch
from scpslab.plan.routes import Route
from scpslab.plan.serial_links import SerialDirection, SerialLink

FORWARDS = "net.ipv4.ip_forward"
T = TypeVar("T")
Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Interface: TypeAlias = ipaddress.IPv4Interface | ipaddress.IPv6Interface
Prefix: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Hop:
    """A link in the direction in which a packet takes it."""

    link: Link | SerialLink
    direction: Direction | SerialDirection

    @property
    def place(self) -> tuple[str, str]:
        """The names of link and direction."""
        return self.link.name, self.direction.name

    @property
    def delay_ns(self) -> int:
        """The delay with which a cell begins."""
        return self.direction.first_delay_ns if isinstance(self.direction, Direction) else self.direction.delay_ns

    @property
    def mtu_bytes(self) -> int:
        """The largest IP packet that fits through."""
        return self.link.mtu_bytes


Way = list[Hop]


def way(links: Iterable[Link | SerialLink], source: str, destination: str) -> Way:
    """The hops from one node to another over the fewest links, which is how SCPS-NP is routed; empty when there is no
    way.
    """
    hops = [Hop(link, direction) for link in links for direction in link.directions]
    return fewest([(hop.direction.from_, hop.direction.to, hop) for hop in hops], source, destination)


def fewest(steps: Iterable[tuple[str, str, T]], source: str, destination: str) -> list[T]:
    """The steps (from, to, what it is) that lead from one place to another, as few as can be; none when there is no
    way.
    """
    known = list(steps)
    reached: dict[str, list[T]] = {source: []}
    frontier = [source]
    while frontier and destination not in reached:
        here = frontier.pop(0)
        for start, end, step in known:
            if start == here and end not in reached:
                reached[end] = [*reached[here], step]
                frontier.append(end)
    return reached.get(destination, [])


def slowest(found: Way) -> Hop | None:
    """The hop of a way with the lowest rate, the first of several; None when none is limited."""
    return min(
        (hop for hop in found if hop.direction.rate_bps is not None),
        key=lambda hop: hop.direction.rate_bps or 0,
        default=None,
    )


class NoPathError(ValueError):
    """Packets do not arrive: `node` is the node that does not pass them on, the message says why."""

    def __init__(self, node: str, why: str) -> None:
        super().__init__(why)
        self.node = node


@dataclass(frozen=True)
class _Attachment:
    """A node's end of a link: its own address there, and the addresses that it reaches without a router."""

    link: Link | SerialLink
    own: Address
    reaches: Prefix


@lru_cache(maxsize=65_536)
def parsed(ip: str) -> Interface:
    """An address with its prefix. Networks of a sweep have the same ones.

    Raises:
        ValueError: the text is no address.
    """
    return ipaddress.ip_interface(ip)


@dataclass(frozen=True)
class NextHop:
    """What a node does with a packet: the link it leaves by, the address of the next node, and the node's address that
    its kernel sends from.
    """

    link: Link | SerialLink
    ip: str
    source: str


class Paths:
    """Follows the routes of a network.

    A node takes the longest prefix that fits, as Linux does; of equal ones a route before the subnet of an interface,
    and the last of several routes.
    """

    def __init__(self, nodes: Iterable[Node], links: tuple[Link | SerialLink, ...]) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._links = links
        self._attached: dict[str, list[_Attachment]] = {name: [] for name in self._nodes}
        self._owners: dict[str, str] = {}
        self._ways: dict[tuple[str, str, str], Way] = {}
        self._hops: dict[tuple[str, str], NextHop] = {}
        for link in self._links:
            first, second = ((end.node, parsed(end.ip) if end.ip else None) for end in link.ends)
            for (node, own), (_, peer) in ((first, second), (second, first)):
                if own is not None:
                    self._owners[str(own.ip)] = node
                    # PPP makes a route to its peer alone.
                    reaches = ipaddress.ip_network(peer.ip) if isinstance(link, SerialLink) and peer else own.network
                    self._attached[node].append(_Attachment(link, own.ip, reaches))

    def path(self, start: str, end: str, to_ip: str) -> Way:
        """The hops of packets from node `start` to node `end`, which has the address `to_ip`.

        Raises:
            NoPathError: a node has no route, drops the packets, does not forward them, or they go in circles.
        """
        known = (start, end, to_ip)
        if known not in self._ways:
            self._ways[known] = self._followed(*known)
        return self._ways[known]

    def _followed(self, start: str, end: str, to_ip: str) -> Way:
        if self._has_np:
            # Routers of SCPS-NP have tables of their own, which lead over the fewest links (planning/plan.py).
            return way(self._links, start, end)
        here, hops, passed = start, list[Hop](), [start]
        while here != end:
            hops += self._crossed(here, self.next_hop(here, to_ip))
            here = hops[-1].direction.to
            if here != end and not self.forwards(here):
                raise NoPathError(here, f"{here} is a host, which does not forward packets to {to_ip}")
            if here in passed:
                raise NoPathError(
                    here, f"packets to {to_ip} go in circles: {', '.join([*passed[passed.index(here) :], here])}"
                )
            passed.append(here)
        return hops

    def next_hop(self, node: str, to_ip: str) -> NextHop:
        """Where a node sends packets for an address.

        Raises:
            NoPathError: nowhere.
        """
        if (node, to_ip) not in self._hops:
            self._hops[node, to_ip] = self._chosen(node, to_ip)
        return self._hops[node, to_ip]

    def _chosen(self, node: str, to_ip: str) -> NextHop:
        wanted = ipaddress.ip_address(to_ip)
        best: tuple[int, Route | _Attachment] | None = None
        for attachment in reversed(self._attached[node]):
            if wanted in attachment.reaches and (best is None or attachment.reaches.prefixlen >= best[0]):
                best = attachment.reaches.prefixlen, attachment
        for route in self._routes(node):
            prefix = _prefix(route.to, wanted.version)
            if wanted in prefix and (best is None or prefix.prefixlen >= best[0]):
                best = prefix.prefixlen, route
        if best is None:
            raise NoPathError(node, f"{node} has no route to {to_ip}")
        if isinstance(best[1], _Attachment):
            return NextHop(best[1].link, to_ip, str(best[1].own))
        return self._by(node, best[1], to_ip)

    def _by(self, node: str, route: Route, to_ip: str) -> NextHop:
        if route.via is None:
            raise NoPathError(node, f"{node} drops packets to {to_ip}, as its route to {route.to} says")
        near = [one for one in self._attached[node] if ipaddress.ip_address(route.via) in one.reaches]
        if not near:
            raise NoPathError(node, f"{node} has a route to {route.to} by {route.via}, which is no neighbour")
        out = max(near, key=lambda one: one.reaches.prefixlen)
        return NextHop(out.link, route.via, route.src or str(out.own))

    def _crossed(self, node: str, step: NextHop) -> Way:
        """The hops to the next node: one link, or more where switches join them."""
        owner = self._owners.get(step.ip)
        steps = [
            (direction.from_, direction.to, Hop(link, direction))
            for link in self._links
            for direction in link.directions
            # Out by the interface of the route, and through nothing but switches.
            if (link is step.link if direction.from_ == node else isinstance(self._nodes.get(direction.from_), Switch))
        ]
        if owner is None or owner == node or not (hops := fewest(steps, node, owner)):
            raise NoPathError(
                node, f"{node} sends to {step.ip} on link {step.link.name}, where no node has this address"
            )
        return hops

    @property
    def _has_np(self) -> bool:
        return any(isinstance(node, ScpsRouter) for node in self._nodes.values())

    def source(self, node: str, to_ip: str) -> str:
        """The address that a node's kernel sends from to another one; its first where SCPS-NP joins what IP does not.

        Raises:
            NoPathError: it has no route there.
        """
        try:
            return self.next_hop(node, to_ip).source
        except NoPathError:
            if self._has_np and self._attached[node]:
                return str(self._attached[node][0].own)
            raise

    def _routes(self, node: str) -> tuple[Route, ...]:
        plan = self._nodes[node]
        return () if isinstance(plan, Switch) else plan.routes

    def forwards(self, node: str) -> bool:
        """Whether a node passes on packets that are not its own."""
        plan = self._nodes[node]
        return not isinstance(plan, Host) or plan.sysctls.get(FORWARDS) == "1"


@lru_cache(maxsize=65_536)
def _prefix(to: str, version: int) -> Prefix:
    everything = "::/0" if version == 6 else "0.0.0.0/0"
    return ipaddress.ip_network(everything if to == "default" else to)
