"""Gateways: what became of the octets that they took from either side, of all connections together, and what they sent
again over the link.
"""

from scpslab.analysis.metrics.base import OF_SERVICES, PlanFamily, Records, Values, count, event, section
from scpslab.plan import Plan

from scpslab.kinds.services.gateway.plan import GatewayService
from scpslab.kinds.services.host_gateway.plan import HostGatewayService

CONNECTIONS = ("finished", "broken")
SIDES = ("from_lan", "from_wan")
OCTETS = ("received", "delivered", "buffered", "lost")


def _values(plan: Plan, records: Records) -> Values:
    """For each gateway its connections, its account of either direction, whether that closes, and its resends."""
    values: Values = {}
    for service in (one for one in plan.cell.services if isinstance(one, GatewayService | HostGatewayService)):
        account = event(records, service.name, "counters")
        values |= {f"{service.name}_{what}": count(account, what) for what in CONNECTIONS}
        for side in SIDES:
            octets = section(account, side)
            values |= {f"{service.name}_{side}_{what}_bytes": count(octets, what) for what in OCTETS}
        closes = account.get("closes")
        values[f"{service.name}_closes"] = closes if isinstance(closes, bool) else None
        values[f"{service.name}_resends"] = resends(records, service.name)
    return values


def resends(records: Records, gateway: str) -> int | None:
    """Segments that a gateway sent again on the links, of all its connections; None if its account has no end."""
    return count(section(event(records, gateway, "counters"), "wan"), "resends")


OF_SERVICES.register("gateway", PlanFamily(_values))
