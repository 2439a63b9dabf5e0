"""Addresses of the lab in IPv6: those of its networks in IPv4, each behind one prefix (RFC 4193). Analyses know an
address by a number.
"""

from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_interface, ip_network

PREFIX, PREFIX_BITS = int(IPv6Address("fd00::")), 96
SIX = 1 << 32


def in_ipv6(text: str) -> str:
    """An address or prefix of IPv4, with the length of its prefix or without, as the lab has it in IPv6."""
    ip, slash, length = text.partition("/")
    own = IPv6Address(PREFIX | int(IPv4Address(ip)))
    return f"{own}/{PREFIX_BITS + int(length)}" if slash else str(own)


def alone(ip: object) -> str:
    """The prefix that has one address only."""
    return str(ip_network(str(ip)))


def subnet(cidr: str) -> str:
    """The prefix of an address with the length of its prefix."""
    return str(ip_interface(cidr).network)


@cache
def number(ip: str) -> int:
    """The number of an address; 0 where it is none of the lab's."""
    whole = ip_address(ip)
    if whole.version == 4:
        return int(whole)
    return int(whole) - PREFIX | SIX if int(whole) >> 32 == PREFIX >> 32 else 0


def text(of: int) -> str:
    """The address of a number."""
    return str(IPv6Address(PREFIX | of - SIX) if of & SIX else IPv4Address(of))


def end(ip: str, port: int) -> str:
    """An address and a port, as people write them."""
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def ip_of(end_text: str) -> str:
    """The address of such an end."""
    return end_text.rpartition(":")[0].strip("[]")
