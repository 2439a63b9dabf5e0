"""How long a plan takes at least, before anything runs: what `scpslab list` shows."""

from __future__ import annotations

from scpslab.plan import Plan
from scpslab.plan.ways import slowest, way
from scpslab.plan.workloads import Iperf3, Ping, Traffic

SECOND_NS = 10**9


def least_virtual_s(plan: Plan) -> float:
    """Virtual seconds until the last required workload can be over when nothing is lost and nothing waits."""
    return max((_end_ns(plan, workload) for workload in plan.workloads if workload.required), default=0) / SECOND_NS


def _end_ns(plan: Plan, workload: Traffic) -> int:
    found = way(plan.all_links, workload.from_, workload.to)
    delay_ns = sum(hop.direction.delay_ns for hop in found)
    hop = slowest(found)
    # A round trip to connect and one for the last acknowledgement.
    return workload.start_ns + _busy_ns(workload, hop.direction.rate_bps if hop else None) + 4 * delay_ns


def _busy_ns(workload: Traffic, rate_bps: int | None) -> int:
    match workload:
        case Ping():
            return (workload.count - 1) * workload.interval_ns
        case Iperf3() if workload.duration_ns:
            return workload.duration_ns
    # A kind that sends no number of bytes takes no time that is known.
    sent: int | None = getattr(workload, "bytes_", None)
    return sent * 8 * SECOND_NS // rate_bps if sent and rate_bps else 0
