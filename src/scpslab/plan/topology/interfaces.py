"""Names of interfaces, and the addresses of nodes: always the same for the same network."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Interface

from scpslab.core.names import shown
from scpslab.plan.topology.description import Link, Network

LONGEST_INTERFACE_NAME = 15
# A host has at most one serial link, and pppd begins to count at 0.
PPP_INTERFACE = "ppp0"


@dataclass(frozen=True)
class Address:
    """An address of a node: the link and the interface that has it, and the node at the link's other end."""

    node: str
    link: str
    interface: str
    other: str
    ip: IPv4Interface

    @property
    def name(self) -> str:
        """`NODE.LINK`, as people write it."""
        return f"{self.node}.{self.link}"


def addresses(network: Network) -> list[Address]:
    """Every address of a network: first those of packet links, in the order of the links.

    Raises:
        ValueError: a text that is no address, or a name that is too long for an interface.
    """
    found = []
    for link in sorted(network.links, key=lambda link: link.serial is not None):
        ends = ((link.a, link.b, link.a_ip), (link.b, link.a, link.b_ip))
        found += [
            Address(node, link.name, name, other, _address(link, ip))
            for (node, other, ip), name in zip(ends, interfaces(link), strict=True)
            if ip
        ]
    return found


def _address(link: Link, ip: str) -> IPv4Interface:
    try:
        return IPv4Interface(ip)
    except ValueError as error:
        raise ValueError(
            f"link {link.name}: found the address {shown(ip)}; expected one with its prefix, such as 10.1.0.1/24. "
            "Correct it."
        ) from error


def interfaces(link: Link) -> tuple[str, str]:
    """The names of a link's interfaces at its two ends."""
    if link.serial is not None:
        return PPP_INTERFACE, PPP_INTERFACE
    far = (link.name, link.name) if link.via else (link.b, link.a)
    return interface(link.a, far[0]), interface(link.b, far[1])


def interface(node: str, other: str) -> str:
    """The name of a node's interface to another node, or to a link.

    Raises:
        ValueError: the kernel allows no name of this length.
    """
    name = f"{node}-{other}"
    if len(name) > LONGEST_INTERFACE_NAME:
        raise ValueError(
            f"interface {name}: found {len(name)} characters; expected at most {LONGEST_INTERFACE_NAME}. "
            "Use shorter node names."
        )
    return name
