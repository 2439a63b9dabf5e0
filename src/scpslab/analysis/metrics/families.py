"""All families of metrics in the order of their columns: those of workloads first, then those of a plan's other parts,
of which links and the SCPS programs at the ends of transfers are here.
"""

from __future__ import annotations

from typing import Any

from scpslab.analysis.metrics import base
from scpslab.analysis.metrics.data_flows import DATA_FLOWS, told_by
from scpslab.plan import Plan
from scpslab.plan.links import ALL_CAUSES, LOSS_CAUSES, POLICED

# What PPP and the channel count of a serial link's direction.
SERIAL = ("sent_frames", "lost_frames", "bit_errors", "most_waiting_bytes")
# Columns have the words that directions had when the first results were written, so that results stay comparable.
COLUMN_WORDS = {"forward": "data", "return": "ack"}
# Reports of routers that the sender heeded: SCMP 4, 19 and 3/16.
SIGNALS = ("congestion", "corruption", "outage")


def _stem(link: str, direction: str) -> str:
    return f"{link}_{COLUMN_WORDS.get(direction, direction)}"


def _losses(plan: Plan, records: base.Records) -> base.Values:
    """Offered packets of every link with a delay stage, one recorded cause for each that did not arrive, then those
    lost on all other links together.
    """
    lines = records("accounting")
    accounts = {(line.get("link"), line.get("direction")): line for line in lines}
    measured = [link for link in plan.network.links if link.via is not None]
    values: base.Values = {}
    directions = ((link.name, direction) for link in measured for direction in link.directions)
    for name, direction in directions:
        account, stem = accounts.get((name, direction.name), {}), _stem(name, direction.name)
        values[f"{stem}_offered_packets"] = base.count(account, "offered_packets")
        values |= {f"{stem}_lost_{cause}_packets": base.count(account, f"{cause}_packets") for cause in LOSS_CAUSES}
        if (impairment := plan.cell.impairment(name, direction.name)) and impairment.policer:
            values[f"{stem}_lost_{POLICED}_packets"] = base.count(account, f"{POLICED}_packets")
        values[f"{stem}_flipped_packets"] = base.count(account, "flipped_packets")
        if direction.queue is not None and direction.queue.ecn:
            values[f"{stem}_marked_packets"] = base.count(account, "marked_packets")
    if plan.network.links:
        names = {link.name for link in measured}
        others = [line for line in lines if line.get("link") not in names]
        lost = sum(base.count(line, f"{cause}_packets") or 0 for line in others for cause in ALL_CAUSES)
        values["other_lost_packets"] = lost if lines else None
    return values


def _serial_links(plan: Plan, records: base.Records) -> base.Values:
    """What was counted of both directions of every serial link."""
    values: base.Values = {}
    for link in plan.network.serial_links:
        counted = {line.get("direction"): line for line in records(link.name) if line.get("event") == "direction"}
        for direction in link.directions:
            fields = counted.get(direction.name, {})
            values |= {f"{_stem(link.name, direction.name)}_{what}": base.count(fields, what) for what in SERIAL}
    return values


def _signals(plan: Plan, records: base.Records) -> base.Values:
    """The smoothed round-trip time at the end of each transfer over SCPS-NP, and what routers signalled to it."""
    values: base.Values = {}
    for name in (name for name, program in told_by(plan) if program.np):
        report = base.section(base.event(records, name, "sender"), "scps")
        srtt_s = base.number(report, "srtt_s")
        values[f"{name}_srtt_ms"] = None if srtt_s is None else 1000 * srtt_s
        values |= {f"{name}_{kind}_signals": base.count(base.section(report, "signals"), kind) for kind in SIGNALS}
    return values


def _protection(plan: Plan, records: base.Records) -> base.Values:
    """Packets that each end of each transfer over SCPS-SP sealed, opened and dropped, whatever the reason."""
    values: base.Values = {}
    for name in (name for name, program in told_by(plan) if program.sp):
        for end in ("sender", "receiver"):
            counted = base.section(base.section(base.event(records, name, end), "scps"), "sp")
            values |= {f"{name}_{end}_sp_{what}": base.count(counted, what) for what in ("sealed", "opened")}
            reasons = counted.get("dropped")
            values[f"{name}_{end}_sp_dropped"] = (
                sum(base.count(reasons, reason) or 0 for reason in reasons) if isinstance(reasons, dict) else None
            )
    return values


def families() -> tuple[base.Family[Any], ...]:
    """Those of workloads, once the kinds have registered themselves."""
    return tuple(family for flow in DATA_FLOWS.values() for family in flow.families)


def of_plans() -> tuple[base.PlanFamily, ...]:
    """Those of a plan's other parts. Routers stand where they stood in the first results."""
    services = dict(base.OF_SERVICES)
    routers = services.pop("np-router")
    of_links = (base.PlanFamily(_losses), base.PlanFamily(_serial_links), base.PlanFamily(_signals, decimals=3))
    return (*of_links, routers, base.PlanFamily(_protection), *services.values())
