"""Networks as topology files describe them, in the plan's own nodes, links and directions.

MACs and names of interfaces follow from the description: they are always the same for the same network.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from scpslab.core.addresses import in_ipv6
from scpslab.core.names import EXPECTED, LONGEST_INTERFACE, is_name, shown
from scpslab.plan.disciplines import Queue
from scpslab.plan.links import Direction, End, Link
from scpslab.plan.network import Containers, NetworkPlan
from scpslab.plan.nodes import Host, Node, Router, ScpsRouter, Switch
from scpslab.plan.routes import NO_OPTIONS, RouteOptions
from scpslab.plan.serial_links import Ppp, SerialDirection, SerialEnd, SerialLink
from scpslab.plan.topology.routes import routed

# Roles of hosts that make other people's traffic or only listen; `hosts.*` of a scenario leaves them as they are.
BYSTANDERS = ("congestion", "monitor")
ROLES = ("source", "sink", *BYSTANDERS)
# Nodes, and links: more than one guest holds. Whatever looks at a network may look at each of them for each.
MOST = 1 << 12
# Enough for every network of the project.
MEMORY_MIB = 512
# A host has at most one serial link, and pppd begins to count at 0.
PPP_INTERFACE = "ppp0"


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


@dataclass
class Network:
    """Nodes and links in the order in which they were added, links of packets and serial ones each by themselves;
    `roles` maps each role of an experiment to its node, `streams` a link and direction to the name by which random
    streams know it, where that is another one.
    """

    name: str
    nodes: list[Node] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    serial_links: list[SerialLink] = field(default_factory=list)
    routes: list[tuple[str, str, str]] = field(default_factory=list)
    roles: dict[str, str] = field(default_factory=dict)
    streams: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def all_links(self) -> list[Link | SerialLink]:
        """Links of packets, then serial links."""
        return [*self.links, *self.serial_links]

    def host(self, name: str, role: str = "") -> None:
        """Adds a host."""
        if role and role not in ROLES:
            raise ValueError(
                f"node {shown(name)}: found the role {shown(role)}; expected one of {', '.join(ROLES)}. "
                "Correct the role, or leave it out."
            )
        self._add(Host(name=name, stack="kernel", sysctls={}, routes=()))
        if role:
            self.roles[role] = name

    def router(self, name: str) -> None:
        """Adds a router: a node that forwards IPv4."""
        self._add(Router(name=name, stack="kernel", sysctls={}, routes=()))

    def scps_router(self, name: str) -> None:
        """Adds a node that forwards SCPS-NP, between LANs (over IP) and serial lines."""
        self._add(ScpsRouter(name=name, stack="scps", sysctls={}, routes=()))

    def switch(self, name: str, mirror_to: str | None = None) -> None:
        """Adds an Open vSwitch bridge; `mirror_to` names the host that sees every frame."""
        self._add(Switch(name=name, mirror_to=mirror_to))

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
        """Joins `a` and `b`. Without given directions, both are unlimited and have the names forward and return.

        `via` names the switch that holds the delay (a bent pipe).
        """
        there, back = forward or Direction("forward"), reverse or Direction("return")
        if via is None and (there.delay_ns or back.delay_ns):
            raise ValueError(
                f"link {a}-{b}: found a delay without a via node; expected a switch that holds the delay. "
                "Name it with via."
            )
        name = name or f"{a}-{b}"
        self._check(name, there, back)
        # Draws on links of one's own topologies began under these names.
        self.streams |= {(name, there.name): "out"} if forward is None else {}
        self.streams |= {(name, back.name): "in"} if reverse is None else {}
        far = (name, name) if via else (b, a)
        number = 2 * len(self.links)
        self.links.append(
            Link(
                name=name,
                via=via,
                mtu_bytes=mtu_bytes,
                ends=(
                    End(node=a, interface=_interface(a, far[0]), mac=_mac(number + 1), ip=a_ip),
                    End(node=b, interface=_interface(b, far[1]), mac=_mac(number + 2), ip=b_ip),
                ),
                relay_interfaces=(_interface(via, a), _interface(via, b)) if via else None,
                directions=(_direction(there, a, b), _direction(back, b, a)),
            )
        )

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
        self._check(name, forward, reverse)
        self.serial_links.append(
            SerialLink(
                name=name,
                bits_per_byte=serial.bits_per_byte,
                buffer_bytes=serial.buffer_bytes,
                vector_bits=serial.vector_bits,
                ppp=None
                if serial.is_np
                else Ppp(
                    mru_bytes=serial.mru_bytes, asyncmap=serial.asyncmap, header_compression=serial.header_compression
                ),
                ends=(_serial_end(a, a_ip), _serial_end(b, b_ip)),
                np_mtu_bytes=serial.mru_bytes if serial.is_np else None,
                directions=(_line(name, forward, a, b), _line(name, reverse, b, a)),
            )
        )

    def in_ipv6(self) -> Network:
        """The same with addresses of IPv6 in place of those of IPv4 (core/addresses.py)."""

        def at(end: End) -> End:
            return replace(end, ip=end.ip and in_ipv6(end.ip))

        links = [replace(link, ends=(at(link.ends[0]), at(link.ends[1]))) for link in self.links]
        return replace(self, links=links)

    def bystanders(self) -> set[str]:
        """The hosts that are no party of an experiment: their role says so."""
        return {self.roles[role] for role in BYSTANDERS if role in self.roles}

    def plan(self, containers: Containers = "process", memory_mib: int = MEMORY_MIB) -> NetworkPlan:
        """The network as a plan has it (docs/plan-format.md), with no kernel settings, containers or route options yet.

        Raises:
            ValueError: a route that leads nowhere, or a text that is no address.
        """
        network = NetworkPlan(
            topology=self.name,
            containers=containers,
            memory_mib=memory_mib,
            nodes=tuple(self.nodes),
            links=tuple(link.sized() for link in self.links),
            serial_links=tuple(self.serial_links),
        )
        return routed(network, self.routes)

    def _add(self, node: Node) -> None:
        if not is_name(node.name):
            raise ValueError(f"node: found the name {shown(node.name)}; expected {EXPECTED}. Rename the node.")
        _alone_and_few("node", node.name, [known.name for known in self.nodes])
        self.nodes.append(node)

    def _check(self, name: str, forward: Direction, reverse: Direction) -> None:
        for word in (name, forward.name, reverse.name):
            if not is_name(word):
                raise ValueError(f"link {shown(name)}: found the name {shown(word)}; expected {EXPECTED}. Rename it.")
        _alone_and_few("link", name, [known.name for known in self.all_links])


def _alone_and_few(what: str, name: str, known: list[str]) -> None:
    if name in known:
        found = f"{what} {name}: found the name a second time"
        raise ValueError(f"{found}; expected it once. Rename one of the {what}s.")
    if len(known) == MOST:
        found = f"{what} {name}: found more than {MOST} {what}s"
        raise ValueError(f"{found}; expected a network that one guest holds. Describe a smaller one.")


def _direction(direction: Direction, start: str, end: str) -> Direction:
    """It has a queue exactly where it has a rate."""
    queue = None if direction.rate_bps is None else direction.queue or Queue()
    return replace(direction, from_=start, to=end, queue=queue)


def _line(link: str, direction: Direction, start: str, end: str) -> SerialDirection:
    if direction.rate_bps is None:
        raise ValueError(f"serial link {link}: direction {direction.name} needs a rate")
    return SerialDirection(
        name=direction.name, from_=start, to=end, rate_bps=direction.rate_bps, delay_ns=direction.delay_ns
    )


def _serial_end(node: str, ip: str | None) -> SerialEnd:
    return SerialEnd(node=node, interface=PPP_INTERFACE if ip else None, ip=ip, route=RouteOptions(**NO_OPTIONS))


def _mac(number: int) -> str:
    return f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}"


def _interface(node: str, other: str) -> str:
    """The name of a node's interface to another node, or to a link.

    Raises:
        ValueError: the kernel allows no name of this length.
    """
    name = f"{node}-{other}"
    if len(name) > LONGEST_INTERFACE:
        raise ValueError(
            f"interface {name}: found {len(name)} characters; expected at most {LONGEST_INTERFACE}. "
            "Use shorter node names."
        )
    return name
