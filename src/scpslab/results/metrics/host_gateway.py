"""What the gateway of a host of stack `scps` did for the host's unmodified programs, whose own transport ends in the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scpslab.plan.services import HostGatewayService

if TYPE_CHECKING:
    from scpslab.plan import Plan
    from scpslab.results.run import RunCell


def gateway_of(plan: Plan, node: str) -> HostGatewayService | None:
    """The gateway of a node's own programs; None if it has none."""
    return next((one for one in plan.services or () if isinstance(one, HostGatewayService) and one.node == node), None)


def resends(cell: RunCell, gateway: HostGatewayService) -> int | None:
    """Segments that a gateway sent again on the links, of all its connections; None if its account has no end."""
    found = next((line.get("wan") for line in reversed(cell.records(gateway.name)) if line.get("event") == "counters"), None)
    again = found.get("resends") if isinstance(found, dict) else None
    return again if isinstance(again, int) else None
