"""SCPS-NP: what a node knows of the others, and the interfaces of a router. SCPS-SP: how a `scps` program protects its
segments (scps-sp §6), and the octets that it takes of a packet.

Addresses of NP are hexadecimal, as its tables write them.
"""

import re
from typing import Annotated, Literal

from scpslab.plan.links import Mtu
from scpslab.plan.schema import Part, Range, Text
from scpslab.plan.values import Amount, Ip, Name, Rate, Seed

LEVELS = 16
HEX = re.compile(r"[0-9a-f]{1,8}", re.ASCII)
# How a table names the node at the other end of a serial line (scps-np §4.1).
SERIAL_HOP = "0.0.0.1"
NpAddress = Annotated[
    str, Text("an NP address: up to eight hexadecimal digits", lambda text: HEX.fullmatch(text) is not None)
]
Precedence = Annotated[int, Range(0, LEVELS - 1)]
Discard = Literal["lowest-oldest", "lowest-newest", "newest"]
# The interface of a router that is not a serial link's.
LAN = "lan"


class NpHost(Part):
    """A node: its address in IPv4, and in NP."""

    ip: Ip
    np: NpAddress


class NpHop(Part):
    """The node to which datagrams for another go next."""

    to: NpAddress
    via: Ip


class NpEnd(Part):
    """SCPS-NP under a `scps` program. `believed`: the routers whose reports of corruption count."""

    hosts: tuple[NpHost, ...]
    next_hops: tuple[NpHop, ...]
    default_precedence: Precedence
    believed: tuple[Ip, ...]


class NpQueue(Part):
    """The queues of an interface: how many packets are too many, how many are discarded then, and which."""

    limit: Amount
    purge: Amount
    rule: Discard


class NpInterface(Part):
    """An interface of a router.

    `line`: the serial link; None: IP. `rate_bps`: that of the line, whose octets have `bits_per_byte`; None: not
    limited.

    `sp`: it carries only what SCPS-SP protects, or nothing of that; None: everything.
    """

    name: Name
    line: Name | None
    neighbours: tuple[Ip, ...]
    mtu_bytes: Mtu
    rate_bps: Rate | None
    bits_per_byte: Amount
    queue: NpQueue
    sp: Literal["required", "none"] | None = None


Suite = Literal["aes-256-gcm", "chacha20-poly1305", "aes-128-gcm"]
Service = Literal["confidentiality", "authentication", "integrity"]
# Clear header, key id, sequence number, flags, integrity check; and both addresses (scps-sp §6).
OVERHEAD_BYTES = 1 + 2 + 6 + 1 + 16
ADDRESS_BYTES = 8


class SpEnd(Part):
    """SCPS-SP under a `scps` program.

    `peer`: the program at the other end; `key_name` and `key_seed`: of the file that the lab makes the key in.
    """

    peer: Ip
    suite: Suite
    services: tuple[Service, ...]
    key_name: Name
    key_seed: Seed


def overhead_bytes(services: tuple[Service, ...]) -> int:
    """What SCPS-SP adds to a packet."""
    return OVERHEAD_BYTES + (ADDRESS_BYTES if "authentication" in services else 0)
