"""The network of a plan: what is set up once for all cells on it.

It says nothing of bit errors, seeds, traffic or time.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Annotated, Literal

from scpslab.core.problems import Problem
from scpslab.plan.links import Link
from scpslab.plan.nodes import Host, Node, Router, ScpsRouter, Switch
from scpslab.plan.packs import Pack
from scpslab.plan.paths import Paths
from scpslab.plan.places import unknown
from scpslab.plan.schema import Items, Part, Range
from scpslab.plan.serial_links import SerialLink
from scpslab.plan.stacks import STACKS
from scpslab.plan.values import Label

LARGEST_MEMORY_MIB = 1 << 20
Containers = Literal["process", "docker"]
MemoryMib = Annotated[int, Range(32, LARGEST_MEMORY_MIB)]
# Lines of the record of packets, as images/guest/tools/stages.bpf.c has them: an offer of a packet, a sight of one, a
# state of TCP.
OFFER_BYTES, SIGHT_BYTES, STATE_BYTES = 136, 24, 48
# A packet is seen where it leaves and where it arrives, and may arrive twice. An acknowledgement passes a link, as what
# it acknowledges did.
SIGHTS_PER_PACKET, PACKETS_PER_STATE = 2, 2
# Half of what a guest has beyond its usual memory is for the record, and an eighth of that.
USUAL_MEMORY_MIB = 512
# RFC 8200 §5.
LEAST_MTU_OF_IPV6 = 1280
IPV4_ALONE, REMOVE_IPV6 = "addresses of IPv4, in which alone it goes", "Remove addresses: ipv6."


class NetworkPlan(Part):
    """Nodes and links, what the nodes are, and the memory of the guest. `topology` is what they were made from; `pack`:
    what is over the guest image.
    """

    topology: Label
    containers: Containers
    memory_mib: MemoryMib
    nodes: Annotated[tuple[Node, ...], Items(1)]
    links: tuple[Link, ...]
    serial_links: tuple[SerialLink, ...]
    pack: Pack | None = None

    @cached_property
    def hosts(self) -> Mapping[str, Host]:
        """The hosts, by their names."""
        return {node.name: node for node in self.nodes if isinstance(node, Host)}

    @property
    def speaking(self) -> tuple[Host | Router | ScpsRouter, ...]:
        """The nodes that have programs and addresses: all but the switches."""
        return tuple(node for node in self.nodes if not isinstance(node, Switch))

    @property
    def is_ipv6(self) -> bool:
        """Whether its addresses are those of IPv6."""
        return any(":" in ip for _, ip in self.addresses())

    @property
    def packet_lines(self) -> int:
        """How many lines the record of packets has room for, a line for each link that a packet passes: as many as fit
        into an eighth of the guest's first 512 MiB and half of what it has beyond, a power of two.
        """
        line_bytes = OFFER_BYTES + SIGHTS_PER_PACKET * SIGHT_BYTES + STATE_BYTES // PACKETS_PER_STATE
        usual_mib = min(self.memory_mib, USUAL_MEMORY_MIB)
        lines = ((usual_mib << 20) // 8 + (self.memory_mib - usual_mib << 20) // 2) // line_bytes
        return int(1 << lines.bit_length() - 1)

    @property
    def all_links(self) -> tuple[Link | SerialLink, ...]:
        """Links of packets, then serial links."""
        return (*self.links, *self.serial_links)

    @cached_property
    def paths(self) -> Paths:
        """The paths of packets through it."""
        return Paths(self.nodes, self.all_links)

    def addresses(self) -> list[tuple[str, str]]:
        """Every node with each of its addresses, prefix included."""
        return [(end.node, end.ip) for link in self.all_links for end in link.ends if end.ip]

    def interfaces(self, node: str) -> list[tuple[str, str]]:
        """The interfaces of a node, each behind the name of its link. A serial line of SCPS-NP has none."""
        ends = [(link.name, end) for link in self.all_links for end in link.ends if end.node == node]
        relays = [(link.name, link.relay_interfaces or ()) for link in self.links if link.via == node]
        return [
            *((link, end.interface) for link, end in ends if end.interface is not None),
            *((link, name) for link, both in relays for name in both),
        ]

    def not_containable(self) -> Iterator[Problem]:
        """What there is only with containers, or only without."""
        for number, node in enumerate(self.nodes):
            if not isinstance(node, Switch) and STACKS[node.stack].is_own_image and self.containers != "docker":
                found = f"stack {node.stack} with nodes that are processes"
                yield Problem(("nodes", number, "stack"), found, "containers", "Add containers: docker.")
        for number, link in enumerate(self.serial_links):
            if link.ppp is not None and self.containers == "docker":
                found = "docker with PPP on a serial link, which needs rights that no container has"
                yield Problem(("serial_links", number, "ppp"), found, "process", "Leave containers out.")

    def not_ipv6(self) -> Iterator[Problem]:
        """What there is only with addresses of IPv4."""
        if not self.is_ipv6:
            return
        for number, node in enumerate(self.nodes):
            if not isinstance(node, Switch) and STACKS[node.stack].runs_scps:
                found = f"stack {node.stack} with addresses of IPv6"
                yield Problem(("nodes", number, "stack"), found, IPV4_ALONE, REMOVE_IPV6)
        for number, link in enumerate(self.links):
            if link.mtu_bytes < LEAST_MTU_OF_IPV6:
                found = f"an MTU of {link.mtu_bytes} B with addresses of IPv6"
                yield Problem(("links", number, "mtu_bytes"), found, f"{LEAST_MTU_OF_IPV6} B at least", REMOVE_IPV6)
        for number, _ in enumerate(self.serial_links):
            found = "a serial link with addresses of IPv6"
            yield Problem(("serial_links", number), found, IPV4_ALONE, REMOVE_IPV6)

    def not_speaking(self, node: str) -> Iterator[Problem]:
        """What is wrong with a part's key `node` that names none with programs."""
        names = [speaker.name for speaker in self.speaking]
        if node not in names:
            yield unknown(("node",), node, names)

    def not_directions(self, link: str, directions: Iterable[str], key: str) -> Iterator[Problem]:
        """What is wrong with a part's keys `link` and `key`, which name a link of packets and directions of it."""
        known = {one.name: [direction.name for direction in one.directions] for one in self.links}
        if link not in known:
            yield unknown(("link",), link, known)
            return
        yield from (unknown((key,), name, known[link]) for name in directions if name not in known[link])
