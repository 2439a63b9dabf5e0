"""All families of metrics in the order of their columns: those of workloads first, then those of a plan's other parts,
of which links and the SCPS programs at the ends of transfers are here.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from scpslab.analysis.metrics.base import (
    OF_SERVICES,
    Family,
    PlanFamily,
    Records,
    Values,
    count,
    event,
    number,
    section,
)
from scpslab.analysis.metrics.data_flows import DATA_FLOWS, told_by
from scpslab.plan import Plan
from scpslab.plan.links import LOSS_CAUSES

# What PPP and the channel count of a serial link's direction.
SERIAL = ("sent_frames", "lost_frames", "bit_errors", "most_waiting_bytes")
# Columns have the words that directions had when the first results were written, so that results stay comparable.
COLUMN_WORDS = {"forward": "data", "return": "ack"}
# Reports of routers that the sender heeded: SCMP 4, 19 and 3/16.
SIGNALS = ("congestion", "corruption", "outage")


def _stem(link: str, direction: str) -> str:
    return f"{link}_{COLUMN_WORDS.get(direction, direction)}"


def _losses(plan: Plan, records: Records) -> Values:
    """Offered packets of every link with a delay stage, one recorded cause for each that did not arrive, then those
    lost on all other links together.
    """
    lines = records("accounting")
    accounts = {(line.get("link"), line.get("direction")): line for line in lines}
    measured = [link for link in plan.network.links if link.via is not None]
    values: Values = {}
    directions = ((link.name, direction) for link in measured for direction in link.directions)
    for name, direction in directions:
        account, stem = accounts.get((name, direction.name), {}), _stem(name, direction.name)
        values[f"{stem}_offered_packets"] = count(account, "offered_packets")
        values |= {f"{stem}_lost_{cause}_packets": count(account, f"{cause}_packets") for cause in LOSS_CAUSES}
        values[f"{stem}_flipped_packets"] = count(account, "flipped_packets")
        if direction.queue is not None and direction.queue.ecn:
            values[f"{stem}_marked_packets"] = count(account, "marked_packets")
    if plan.network.links:
        names = {link.name for link in measured}
        others = [line for line in lines if line.get("link") not in names]
        lost = sum(count(line, f"{cause}_packets") or 0 for line in others for cause in LOSS_CAUSES)
        values["other_lost_packets"] = lost if lines else None
    return values


def _serial_links(plan: Plan, records: Records) -> Values:
    """What was counted of both directions of every serial link."""
    values: Values = {}
    for link in plan.network.serial_links:
        counted = {line.get("direction"): line for line in records(link.name) if line.get("event") == "direction"}
        for direction in link.directions:
            fields = counted.get(direction.name, {})
            values |= {f"{_stem(link.name, direction.name)}_{what}": count(fields, what) for what in SERIAL}
    return values


def _signals(plan: Plan, records: Records) -> Values:
    """The smoothed round-trip time at the end of each transfer over SCPS-NP, and what routers signalled to it."""
    values: Values = {}
    for name in (name for name, program in told_by(plan) if program.np):
        report = section(event(records, name, "sender"), "scps")
        srtt_s = number(report, "srtt_s")
        values[f"{name}_srtt_ms"] = None if srtt_s is None else 1000 * srtt_s
        values |= {f"{name}_{kind}_signals": count(section(report, "signals"), kind) for kind in SIGNALS}
    return values


def _protection(plan: Plan, records: Records) -> Values:
    """Packets that each end of each transfer over SCPS-SP sealed, opened and dropped, whatever the reason."""
    values: Values = {}
    for name in (name for name, program in told_by(plan) if program.sp):
        for end in ("sender", "receiver"):
            counted = section(section(event(records, name, end), "scps"), "sp")
            values |= {f"{name}_{end}_sp_{what}": count(counted, what) for what in ("sealed", "opened")}
            reasons = counted.get("dropped")
            values[f"{name}_{end}_sp_dropped"] = (
                sum(count(reasons, reason) or 0 for reason in reasons) if isinstance(reasons, dict) else None
            )
    return values


@cache
def families() -> tuple[Family[Any], ...]:
    """Those of workloads, once the kinds have registered themselves."""
    return tuple(family for flow in DATA_FLOWS.values() for family in flow.families)


@cache
def of_plans() -> tuple[PlanFamily, ...]:
    """Those of a plan's other parts. Routers stand where they stood in the first results."""
    services = dict(OF_SERVICES)
    routers = services.pop("np-router")
    return (
        PlanFamily(_losses),
        PlanFamily(_serial_links),
        PlanFamily(_signals, decimals=3),
        routers,
        PlanFamily(_protection),
        *services.values(),
    )
