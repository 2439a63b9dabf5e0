"""Settings files of SCPS-NP for the `scps` program: `scps router FILE` and `--np FILE` (stack/README.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from scpslab.plan.np import NpEnd, NpInterface

from scpslab.kinds.services.np_router.plan import NpRouterService


def router_file(plan: NpRouterService, terminals: Mapping[str, str]) -> dict[str, Any]:
    """A router's; `terminals`: its end of each of its serial links."""
    return {
        "address": plan.ip,
        "default_precedence": plan.default_precedence,
        "hop_count": plan.hop_count,
        "tables": _tables(plan),
        "interfaces": [_interface(interface, plan.device, terminals) for interface in plan.interfaces],
    }


def end_file(end: NpEnd) -> dict[str, Any]:
    """That of a program at the end of a transfer."""
    return {"default_precedence": end.default_precedence, "believed": list(end.believed), "tables": _tables(end)}


def _tables(node: NpRouterService | NpEnd) -> dict[str, Any]:
    return {"hosts": [asdict(host) for host in node.hosts], "next_hops": [asdict(hop) for hop in node.next_hops]}


def _interface(interface: NpInterface, device: str, terminals: Mapping[str, str]) -> dict[str, Any]:
    carrier: dict[str, Any] = {"kind": "ip", "device": device}
    if interface.line is not None:
        carrier = {"kind": "serial", "line": terminals[interface.line], "bits_per_octet": interface.bits_per_byte}
    found = {"name": interface.name, "carrier": carrier, "neighbours": list(interface.neighbours), "mtu": interface.mtu_bytes}
    if interface.rate_bps is not None:
        found["rate"] = str(interface.rate_bps)
    if interface.sp is not None:
        found["sp"] = interface.sp
    return found | {"queue": asdict(interface.queue)}
