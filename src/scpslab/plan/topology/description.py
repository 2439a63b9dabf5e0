"""The parts of a network: hosts, routers, switches, and links with two directions that each have three stages.

A description is a value. `scpslab.scenario.planning` turns it into a plan (addresses, MACs, sysctls), `scpslab.lab`
builds the plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from scpslab.core.names import EXPECTED, is_name, shown
from scpslab.plan.disciplines import DEFAULT

# Roles of hosts that make other people's traffic or only listen; `hosts.*` of a scenario leaves them as they are.
BYSTANDERS = ("congestion", "monitor")
ROLES = ("source", "sink", *BYSTANDERS)
# Nodes, and links: more than one guest holds. Whatever looks at a network may look at each of them for each.
MOST = 1 << 12


@dataclass(frozen=True)
class Node:
    """A host, router or switch. `mirror_to` (switches) names the host that sees every frame."""

    name: str
    kind: str
    mirror_to: str | None = None


# On the wire: 1500 bytes, and 4 of framing.
FULL_PACKET_BYTES = 1504


@dataclass(frozen=True)
class Queue:
    """The queue before a serialiser, and its discipline (plan/disciplines); exactly one of the limits is set (bytes on
    the wire, or packets).
    """

    limit_bytes: int | None = None
    limit_packets: int | None = None
    discipline: str = DEFAULT
    ecn: bool = False

    @classmethod
    def of_one_product(cls, limit_bytes: int | None, rate_bps: int, rtt_ns: int) -> Queue:
        """The stated limit, or one bandwidth-delay product (at least four full packets, so that a slow hop can
        work).
        """
        return cls(limit_bytes=limit_bytes or max(rate_bps * rtt_ns // (8 * 10**9), 4 * FULL_PACKET_BYTES))


@dataclass(frozen=True)
class Direction:
    """One direction of a link: rate in bit/s (None: not limited), framing overhead in bytes per packet, queue, one-way
    delay in ns.
    """

    name: str
    rate_bps: int | None = None
    overhead_bytes: int = 0
    queue: Queue | None = None
    delay_ns: int = 0


@dataclass(frozen=True)
class Serial:
    """The properties of a serial line: a byte stream paced at the directions' rates, with the kernel's PPP on both
    ends, or SCPS-NP's routers (`is_np`).

    `bits_per_byte` counts start and stop bits. `buffer_bytes` may wait for the line in each direction. Error models
    draw a vector of `vector_bits` and repeat it (0: never). PPP: `mru_bytes`, the characters that are escaped
    (`asyncmap`), Van Jacobson's header compression.
    """

    bits_per_byte: int = 10
    buffer_bytes: int = 1 << 20
    vector_bits: int = 1 << 20
    mru_bytes: int = 1500
    asyncmap: int = 0
    header_compression: bool = False
    is_np: bool = False


@dataclass(frozen=True)
class Link:
    """Two ends and two directions (the first from `a` to `b`).

    `via` names the switch that holds the delay (a bent pipe).
    """

    name: str
    a: str
    b: str
    a_ip: str | None
    b_ip: str | None
    forward: Direction
    reverse: Direction
    mtu_bytes: int
    via: str | None
    serial: Serial | None = None


@dataclass
class Network:
    """Nodes and links in the order in which they were added; `roles` maps each role of an experiment to its node."""

    name: str
    nodes: list[Node] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    routes: list[tuple[str, str, str]] = field(default_factory=list)
    roles: dict[str, str] = field(default_factory=dict)

    def host(self, name: str, role: str = "") -> None:
        """Adds a host."""
        if role and role not in ROLES:
            raise ValueError(
                f"node {shown(name)}: found the role {shown(role)}; expected one of {', '.join(ROLES)}. "
                "Correct the role, or leave it out."
            )
        self._add(Node(name, "host"))
        if role:
            self.roles[role] = name

    def router(self, name: str) -> None:
        """Adds a router: a node that forwards IPv4."""
        self._add(Node(name, "router"))

    def scps_router(self, name: str) -> None:
        """Adds a node that forwards SCPS-NP, between LANs (over IP) and serial lines."""
        self._add(Node(name, "scps-router"))

    def switch(self, name: str, mirror_to: str | None = None) -> None:
        """Adds an Open vSwitch bridge."""
        self._add(Node(name, "switch", mirror_to))

    def route(self, node: str, to: str, via: str) -> None:
        """Adds a static route of a host or router. Each direction of a path has routes of its own.

        `to`: a node (all its addresses), `NODE.LINK` (its address on that link), a prefix or address, or "default".
        `via`: the link that the packets take, the neighbour that gets them (`NODE`, `NODE.LINK`), or its address. A
        later route to the same prefix replaces an earlier one.
        """
        self.routes.append((node, to, via))

    def link(
        self,
        a: str,
        b: str,
        *,
        name: str = "",
        a_ip: str | None = None,
        b_ip: str | None = None,
        forward: Direction | None = None,
        reverse: Direction | None = None,
        mtu_bytes: int = 1500,
        via: str | None = None,
    ) -> None:
        """Joins `a` and `b`. Without given directions, both are unlimited and have the names out and in."""
        forward = forward or Direction("out")
        reverse = reverse or Direction("in")
        for direction in (forward, reverse):
            if direction.delay_ns and via is None:
                raise ValueError(
                    f"link {a}-{b}: found a delay without a via node; expected a switch that holds the delay. "
                    "Name it with via."
                )
        self._join(Link(name or f"{a}-{b}", a, b, a_ip, b_ip, forward, reverse, mtu_bytes, via))

    def serial_link(
        self,
        a: str,
        b: str,
        *,
        name: str,
        forward: Direction,
        reverse: Direction,
        serial: Serial,
        a_ip: str | None = None,
        b_ip: str | None = None,
    ) -> None:
        """Joins hosts `a` and `b` by a serial line; both directions have a rate (baud) and may have a delay, the
        addresses share a subnet.

        With `serial.is_np` it joins routers of SCPS-NP, which have no addresses there.
        """
        if (a_ip is None or b_ip is None) != serial.is_np:
            raise ValueError(
                f"serial link {name}: found addresses with SCPS-NP, or none with PPP; "
                "expected two with PPP, none with SCPS-NP"
            )
        for direction in (forward, reverse):
            if direction.rate_bps is None:
                raise ValueError(f"serial link {name}: direction {direction.name} needs a rate")
        self._join(Link(name, a, b, a_ip, b_ip, forward, reverse, serial.mru_bytes, None, serial))

    def bystanders(self) -> set[str]:
        """The hosts that are no party of an experiment: their role says so."""
        return {self.roles[role] for role in BYSTANDERS if role in self.roles}

    def node(self, name: str) -> Node:
        """The node of that name. Raises KeyError."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)

    def _add(self, node: Node) -> None:
        if not is_name(node.name):
            raise ValueError(f"node: found the name {shown(node.name)}; expected {EXPECTED}. Rename the node.")
        if any(known.name == node.name for known in self.nodes):
            raise ValueError(
                f"node {node.name}: found the name a second time; expected it once. Rename one of the nodes."
            )
        if len(self.nodes) == MOST:
            raise ValueError(
                f"node {node.name}: found more than {MOST} nodes; expected a network that one guest holds. "
                "Describe a smaller one."
            )
        self.nodes.append(node)

    def _join(self, link: Link) -> None:
        for name in (link.name, link.forward.name, link.reverse.name):
            if not is_name(name):
                raise ValueError(
                    f"link {shown(link.name)}: found the name {shown(name)}; expected {EXPECTED}. Rename it."
                )
        if any(known.name == link.name for known in self.links):
            raise ValueError(
                f"link {link.name}: found the name a second time; expected it once. Rename one of the links."
            )
        if len(self.links) == MOST:
            raise ValueError(
                f"link {link.name}: found more than {MOST} links; expected a network that one guest holds. "
                "Describe a smaller one."
            )
        self.links.append(link)
