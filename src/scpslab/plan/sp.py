"""SCPS-SP: how a `scps` program protects its segments (scps-sp §6), and the octets that it takes of a packet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from scpslab.plan.values import Ip, Name, Seed

Suite = Literal["aes-256-gcm", "chacha20-poly1305", "aes-128-gcm"]
Service = Literal["confidentiality", "authentication", "integrity"]
SUITES: tuple[str, ...] = get_args(Suite)
# Clear header, key id, sequence number, flags, integrity check; and both addresses (scps-sp §6).
OVERHEAD_BYTES = 1 + 2 + 6 + 1 + 16
ADDRESS_BYTES = 8


@dataclass(frozen=True, kw_only=True)
class SpEnd:
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
