"""Where an experiment is looked at from: the capture that sees a host's packets, the hop that its throughput is
compared with, the queue before that hop.
"""

from __future__ import annotations

from scpslab.plan import Plan
from scpslab.plan.flows import ways
from scpslab.plan.nodes import Switch
from scpslab.plan.probes import Observer
from scpslab.plan.ways import Hop, slowest
from scpslab.plan.workloads import Traffic


def bottleneck(plan: Plan, workload: Traffic) -> Hop | None:
    """The slowest hop on a workload's way; None when none of its hops is limited."""
    return slowest(ways(plan, workload)[0])


def bottleneck_bps(plan: Plan, workload: Traffic) -> int | None:
    """That hop's rate in bit/s (of a serial link in baud)."""
    hop = bottleneck(plan, workload)
    return hop.direction.rate_bps if hop else None


def queue_probe(plan: Plan, hop: Hop) -> Observer | None:
    """The probe of the queue before a hop, if there is one."""
    place = (hop.link.name, hop.direction.name, "queue")
    return next((probe for probe in plan.cell.probes if probe.measured_stage == place), None)


def capture_at(plan: Plan, node: str) -> Observer | None:
    """The capture probe on a host itself, if there is one."""
    return next((probe for probe in plan.cell.probes if probe.captured_node == node), None)


def capture_near(plan: Plan, node: str) -> Observer | None:
    """The capture that sees a host's packets as the host sends them: on the host, or on the monitor of its switch."""
    return capture_at(plan, node) or capture_beside(plan, node)


def capture_beside(plan: Plan, node: str) -> Observer | None:
    """The capture on the monitor of a host's switch, which sees the traffic of all hosts there."""
    mirrors = {switch.name: switch.mirror_to for switch in plan.network.nodes if isinstance(switch, Switch)}
    for link in plan.network.links:
        for direction in link.directions:
            monitor = mirrors.get(direction.to) if direction.from_ == node else None
            if monitor and (probe := capture_at(plan, monitor)):
                return probe
    return None
