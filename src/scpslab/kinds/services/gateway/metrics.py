"""Gateways: what became of the octets that they took from either side, of all connections together, and what they sent
again over the link.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scpslab.analysis.metrics.base import Column, Value, count, section

from scpslab.kinds.services.gateway.plan import GatewayService
from scpslab.kinds.services.host_gateway.plan import HostGatewayService

if TYPE_CHECKING:
    from scpslab.analysis.run import RunCell
    from scpslab.plan import Plan

CONNECTIONS = {
    "finished": "connections whose octets and ends all arrived",
    "broken": "connections that ended otherwise",
}
SIDES = {"from_lan": "from the LAN", "from_wan": "from the link"}
OCTETS = {
    "received": "bytes taken",
    "delivered": "of these, acknowledged at the other side",
    "buffered": "of these, in the gateway at the end",
    "lost": "of these, in the gateway when their connection ended",
}


def columns(plan: Plan) -> tuple[Column, ...]:
    """For each gateway its connections, its account of either direction, whether that closes, and its resends."""
    found: list[Column] = []
    for name in _names(plan):
        found += [Column(f"{name}_{what}", None, f"{name}: {meaning}.") for what, meaning in CONNECTIONS.items()]
        for side, where in SIDES.items():
            found += [
                Column(f"{name}_{side}_{what}_bytes", None, f"{name}, {where}: {meaning}.")
                for what, meaning in OCTETS.items()
            ]
        found.append(
            Column(f"{name}_closes", None, f"{name}: whether received is delivered + buffered + lost, both ways.")
        )
        found.append(Column(f"{name}_resends", None, f"{name}: segments sent again over the link."))
    return tuple(found)


def measure(cell: RunCell) -> dict[str, Value]:
    """Values by column name from the gateways' accounts."""
    values: dict[str, Value] = {}
    for name in _names(cell.plan):
        account = totals(cell, name)
        values |= {f"{name}_{what}": count(account, what) for what in CONNECTIONS}
        for side in SIDES:
            octets = section(account, side)
            values |= {f"{name}_{side}_{what}_bytes": count(octets, what) for what in OCTETS}
        closes = account.get("closes")
        values[f"{name}_closes"] = closes if isinstance(closes, bool) else None
        values[f"{name}_resends"] = _resends(account)
    return values


def gateway_of(plan: Plan, node: str) -> HostGatewayService | None:
    """The gateway of a node's own programs; None if it has none."""
    return next((one for one in plan.cell.services if isinstance(one, HostGatewayService) and one.node == node), None)


def resends(cell: RunCell, gateway: str) -> int | None:
    """Segments that a gateway sent again on the links, of all its connections; None if its account has no end."""
    return _resends(totals(cell, gateway))


def totals(cell: RunCell, gateway: str) -> dict[str, Any]:
    """The last line of a gateway's account, of all connections; empty if it has none."""
    return next((line for line in reversed(cell.records(gateway)) if line.get("event") == "counters"), {})


def _resends(account: dict[str, Any]) -> int | None:
    return count(section(account, "wan"), "resends")


def _names(plan: Plan) -> list[str]:
    return [service.name for service in plan.cell.services if isinstance(service, GatewayService | HostGatewayService)]
