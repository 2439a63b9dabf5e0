"""SCPS-NP: what routers signalled to each transfer, and what became of packets in a router's queues, by precedence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scpslab.analysis.metrics.base import Column, Value, count, number
from scpslab.analysis.run import RunCell
from scpslab.plan import Plan

from scpslab.kinds.services.np_router.plan import NpRouterService
from scpslab.kinds.workloads.bulk.plan import Bulk

SIGNALS = {
    "congestion": "source quenches (SCMP 4) that the sender heeded",
    "corruption": "reports of corruption (SCMP 19) that the sender heeded",
    "outage": "reports of an outage (SCMP 3/16) that the sender heeded",
}
SENT = {
    "SrcQuenchs": ("source_quenches", "source quenches that the router sent"),
    "CorrExps": ("corruption_reports", "reports of corruption that it sent"),
}
LEVEL = {
    "queued": "packets that came to the queue",
    "discarded": "packets discarded because too many waited",
    "waiting_max": "most packets that waited",
}


def columns(plan: Plan) -> tuple[Column, ...]:
    """For each transfer over SCPS-NP its signals and smoothed round-trip time; for each router what it said, and each
    level of its lines.
    """
    found: list[Column] = []
    for workload in _transfers(plan):
        found.append(
            Column(
                f"{workload.name}_srtt_ms", 3, f"{workload.name}: smoothed round-trip time of the sender at its end."
            )
        )
        found += [
            Column(f"{workload.name}_{kind}_signals", None, f"{workload.name}: {meaning}.")
            for kind, meaning in SIGNALS.items()
        ]
    for router in _routers(plan):
        found += [
            Column(f"{router.name}_{name}", None, f"{router.name}: {meaning}.") for name, meaning in SENT.values()
        ]
        for line in _lines(router):
            found.append(
                Column(
                    f"{router.name}_{line}_damaged",
                    None,
                    f"{router.name}, from {line}: frames that did not come through the frame check.",
                )
            )
            for level in _levels(plan):
                found += [
                    Column(
                        f"{router.name}_{line}_p{level}_{what}",
                        None,
                        f"{router.name}, to {line}, precedence {level}: {meaning}.",
                    )
                    for what, meaning in LEVEL.items()
                ]
    return tuple(found)


def measure(cell: RunCell) -> dict[str, Value]:
    """Values by column name from the records of transfers and routers."""
    values: dict[str, Value] = {}
    for workload in _transfers(cell.plan):
        for line in cell.records(workload.name):
            if line.get("event") == "sender" and isinstance(report := line.get("scps"), dict):
                srtt_s = number(report, "srtt_s")
                values[f"{workload.name}_srtt_ms"] = None if srtt_s is None else 1000 * srtt_s
                values |= {
                    f"{workload.name}_{kind}_signals": count(report.get("signals", {}), kind) for kind in SIGNALS
                }
    for router in _routers(cell.plan):
        for line in cell.records(router.name):
            if line.get("event") == "counters":
                values |= _router(router, line, _levels(cell.plan))
    return values


def _router(router: NpRouterService, counters: Mapping[str, Any], levels: list[int]) -> dict[str, Value]:
    values: dict[str, Value] = {
        f"{router.name}_{name}": count(counters["scmp_out"], key) for key, (name, _) in SENT.items()
    }
    for interface in counters["interfaces"]:
        if interface["name"] not in _lines(router):
            continue
        at = f"{router.name}_{interface['name']}"
        values[f"{at}_damaged"] = count(interface, "damaged")
        by_level = {level["precedence"]: level for level in interface["levels"]}
        values |= {
            f"{at}_p{level}_{what}": count(by_level.get(level, {what: 0}), what) for level in levels for what in LEVEL
        }
    return values


def _transfers(plan: Plan) -> list[Bulk]:
    return [
        workload
        for workload in plan.cell.workloads
        if isinstance(workload, Bulk) and workload.from_scps and workload.from_scps.np
    ]


def _routers(plan: Plan) -> list[NpRouterService]:
    return [service for service in plan.cell.services if isinstance(service, NpRouterService)]


def _lines(router: NpRouterService) -> list[str]:
    return [interface.name for interface in router.interfaces if interface.line is not None]


def _levels(plan: Plan) -> list[int]:
    """The levels that the plan's transfers have, and their routers' default."""
    found = {router.default_precedence for router in _routers(plan)}
    for end in (workload.from_scps for workload in _transfers(plan)):
        if end is not None and end.np is not None:
            found.add(int(end.settings.get("precedence", end.np.default_precedence)))
    return sorted(found)
