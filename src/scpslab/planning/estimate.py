"""How long a plan takes at least, before anything runs: what `scpslab list` shows."""

from __future__ import annotations

from scpslab.plan import Plan
from scpslab.plan.ways import slowest, way
from scpslab.plan.workloads import Traffic
from scpslab.workloads import KINDS

SECOND_NS = 10**9


def least_virtual_s(plan: Plan) -> float:
    """Virtual seconds until the last required workload can be over when nothing is lost and nothing waits."""
    return max((_end_ns(plan, workload) for workload in plan.workloads if workload.required), default=0) / SECOND_NS


def _end_ns(plan: Plan, workload: Traffic) -> int:
    found = way(plan.all_links, workload.from_, workload.to)
    delay_ns = sum(hop.direction.delay_ns for hop in found)
    hop = slowest(found)
    busy_ns = KINDS[workload.kind].busy_ns(workload, hop.direction.rate_bps if hop else None)
    # A round trip to connect and one for the last acknowledgement.
    return workload.start_ns + busy_ns + 4 * delay_ns
