"""What the gateway of a host of stack `scps` did for the host's unmodified programs, whose own transport ends in the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scpslab.plan.services import HostGatewayService

if TYPE_CHECKING:
    from scpslab.results.run import RunCell


def has_gateway(cell: RunCell, node: str) -> bool:
    """Whether the node's programs have one."""
    return _name(cell, node) is not None


def resends(cell: RunCell, node: str) -> int | None:
    """Segments that the node's gateway sent again on the links, of all its connections; None if its account has no end."""
    name = _name(cell, node)
    lines: list[dict[str, Any]] = cell.records(name) if name else []
    found = next((line.get("wan") for line in reversed(lines) if line.get("event") == "counters"), None)
    again = found.get("resends") if isinstance(found, dict) else None
    return again if isinstance(again, int) else None


def _name(cell: RunCell, node: str) -> str | None:
    return next((one.name for one in cell.plan.services or () if isinstance(one, HostGatewayService) and one.node == node), None)
