"""SCPS-SP: packets that each end of a transfer sealed, opened and dropped."""

from __future__ import annotations

from scpslab.analysis.metrics.base import Column, Value, count
from scpslab.analysis.run import RunCell
from scpslab.plan import Plan

from scpslab.kinds.workloads.bulk.plan import Bulk

ENDS = ("sender", "receiver")
MEANING = {
    "sealed": "packets that SCPS-SP protected",
    "opened": "packets that came and verified",
    "dropped": "packets that SCPS-SP dropped, whatever the reason (records name each)",
}


def columns(plan: Plan) -> tuple[Column, ...]:
    """Three for each end of each protected transfer."""
    return tuple(
        Column(f"{workload.name}_{end}_sp_{what}", None, f"{workload.name}, {end}: {meaning}.")
        for workload in _protected(plan)
        for end in ENDS
        for what, meaning in MEANING.items()
    )


def measure(cell: RunCell) -> dict[str, Value]:
    """Values by column name from the transfers' records."""
    values: dict[str, Value] = {}
    for workload in _protected(cell.plan):
        for line in cell.records(workload.name):
            if (
                (end := line.get("event")) in ENDS
                and isinstance(report := line.get("scps"), dict)
                and isinstance(sp := report.get("sp"), dict)
            ):
                values |= {f"{workload.name}_{end}_sp_{what}": count(sp, what) for what in ("sealed", "opened")}
                reasons = sp.get("dropped")
                values[f"{workload.name}_{end}_sp_dropped"] = (
                    sum(count(reasons, reason) or 0 for reason in reasons) if isinstance(reasons, dict) else None
                )
    return values


def _protected(plan: Plan) -> list[Bulk]:
    return [
        workload
        for workload in plan.cell.workloads
        if isinstance(workload, Bulk) and workload.from_scps and workload.from_scps.sp
    ]
