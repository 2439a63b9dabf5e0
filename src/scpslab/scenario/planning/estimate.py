"""How long a plan takes, before anything runs: virtual time at least, and the time of a core as a rule."""

from __future__ import annotations

from dataclasses import dataclass

from scpslab.plan import Plan
from scpslab.plan.paths import ways
from scpslab.plan.ways import slowest
from scpslab.plan.workloads import Traffic
from scpslab.scenario.workloads import KINDS

SECOND_NS = 10**9
# What a cell costs in virtual time on a core of 2024: starting the lab, and each packet of data with its acknowledgements, on a way of three nodes. A run
# that goes on corrects them by the cells that have ended (cli/remaining.py).
START_S, PACKET_S = 0.7, 80e-6


@dataclass(frozen=True)
class Expected:
    """What a cell takes when nothing is lost: virtual seconds, and seconds of a core."""

    virtual_s: float
    wall_s: float


def expected(plan: Plan, *, in_virtual_time: bool = True) -> Expected:
    """What a plan takes. Where time is real, the lab's seconds are those of the wall."""
    virtual_s = least_virtual_s(plan)
    return Expected(virtual_s, START_S + (least_packets(plan) * PACKET_S if in_virtual_time else virtual_s))


def least_virtual_s(plan: Plan) -> float:
    """Virtual seconds until the last required workload can be over when nothing is lost and nothing waits."""
    return max((_end_ns(plan, workload) for workload in plan.cell.workloads if workload.required), default=0) / SECOND_NS


def least_packets(plan: Plan) -> int:
    """Packets of data that the workloads send when nothing is lost; those of congestion generators do not count."""
    return sum(_packets(plan, workload) for workload in plan.cell.workloads)


def _packets(plan: Plan, workload: Traffic) -> int:
    found, _ = ways(plan, workload)
    hop = slowest(found)
    mtu_bytes = min((one.mtu_bytes for one in found), default=0)
    return KINDS[workload.kind].least_packets(workload, hop.direction.rate_bps if hop else None, mtu_bytes) if mtu_bytes else 0


def _end_ns(plan: Plan, workload: Traffic) -> int:
    found, _ = ways(plan, workload)
    delay_ns = sum(hop.direction.delay_ns for hop in found)
    hop = slowest(found)
    busy_ns = KINDS[workload.kind].busy_ns(workload, hop.direction.rate_bps if hop else None)
    # A round trip to connect and one for the last acknowledgement.
    return workload.start_ns + busy_ns + 4 * delay_ns
