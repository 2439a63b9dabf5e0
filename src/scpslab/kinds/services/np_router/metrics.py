"""Routers of SCPS-NP: what they signalled, and what became of packets in the queues of their lines, by precedence."""

from scpslab.analysis.metrics import base
from scpslab.analysis.metrics.data_flows import told_by
from scpslab.plan import Plan

from scpslab.kinds.services.np_router.plan import NpRouterService

# Control messages that the router sent, by their counters.
SENT = {"SrcQuenchs": "source_quenches", "CorrExps": "corruption_reports"}
# What a line counts of each precedence: packets that came to the queue, that too many waited for, and most that waited.
LEVEL = ("queued", "discarded", "waiting_max")


def _values(plan: Plan, records: base.Records) -> base.Values:
    """For each router what it said, and for each of its lines damaged frames and the packets of each level."""
    routers = [service for service in plan.cell.services if isinstance(service, NpRouterService)]
    levels = {router.default_precedence for router in routers} | {
        int(program.settings.get("precedence", program.np.default_precedence))
        for _, program in told_by(plan)
        if program.np
    }
    values: base.Values = {}
    for router in routers:
        counters = base.event(records, router.name, "counters")
        sent = base.section(counters, "scmp_out")
        values |= {f"{router.name}_{name}": base.count(sent, key) for key, name in SENT.items()}
        interfaces = {base.text(interface, "name"): interface for interface in base.items(counters, "interfaces", dict)}
        for line in (interface.name for interface in router.interfaces if interface.line is not None):
            counted = interfaces.get(line, {})
            values[f"{router.name}_{line}_damaged"] = base.count(counted, "damaged")
            by_level = {base.count(level, "precedence"): level for level in base.items(counted, "levels", dict)}
            # A line that never had a packet of a level does not list it.
            unlisted: base.JsonObject = dict.fromkeys(LEVEL, 0) if counted else {}
            for level in sorted(levels):
                fields = by_level.get(level, unlisted)
                values |= {f"{router.name}_{line}_p{level}_{what}": base.count(fields, what) for what in LEVEL}
    return values


base.OF_SERVICES.register("np-router", base.PlanFamily(_values))
