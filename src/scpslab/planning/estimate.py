"""How long a plan takes at least, before anything runs: what `scpslab list` shows."""

from __future__ import annotations

from typing import Any

from scpslab.scenario import Cell
from scpslab.scenario.rates import slowest_bps, way

SECOND_NS = 10**9


def least_virtual_s(cell: Cell, plan: dict[str, Any]) -> float:
    """Virtual seconds until the last required workload can be over when nothing is lost and nothing waits."""
    return max((_end_ns(cell, workload) for workload in plan["workloads"] if workload["required"]), default=0) / SECOND_NS


def _end_ns(cell: Cell, workload: dict[str, Any]) -> int:
    found = way(cell.network, workload["from"], workload["to"])
    delay_ns = sum(direction.delay_ns for _, direction in found)
    rate = slowest_bps(cell.model, found)
    match workload["kind"]:
        case "ping":
            busy_ns = (workload["count"] - 1) * workload["interval_ns"]
        case "iperf3" if workload["duration_ns"]:
            busy_ns = workload["duration_ns"]
        case _:
            # A kind that sends no number of bytes takes no time that is known.
            busy_ns = workload.get("bytes", 0) * 8 * SECOND_NS // rate if rate else 0
    # A round trip to connect and one for the last acknowledgement.
    return int(workload["start_ns"] + busy_ns + 4 * delay_ns)
