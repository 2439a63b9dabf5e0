"""Where an experiment is looked at from: the capture that sees all packets of a host, the hop that its throughput is
compared with, the queue before that hop.
"""

from __future__ import annotations

from operator import mul

from scpslab.plan import Plan
from scpslab.plan.events import LinkStep
from scpslab.plan.flows import ways
from scpslab.plan.nodes import Switch
from scpslab.plan.paths import Hop, slowest
from scpslab.plan.probes import Observer
from scpslab.plan.workloads import Traffic


def bottleneck(plan: Plan, workload: Traffic) -> Hop | None:
    """The slowest hop on a workload's way; None when none of its hops is limited."""
    return slowest(ways(plan, workload)[0])


def bottleneck_bps(plan: Plan, workload: Traffic, span_s: tuple[float, float] | None = None) -> float | None:
    """That hop's rate in bit/s (of a serial link in baud); None when none is limited.

    Where events change rates, it is the least mean rate of a hop over a span of time at the receiving host (seconds
    since the epoch); None when the span is not known.
    """
    way = ways(plan, workload)[0]
    steps = {hop.place: _steps(plan, hop) for hop in way if hop.direction.rate_bps is not None}
    if not any(steps.values()):
        hop = slowest(way)
        return hop.direction.rate_bps if hop else None
    if span_s is None or span_s[1] <= span_s[0]:
        return None
    rates: list[float] = []
    for place, hop in enumerate(way):
        if hop.direction.rate_bps is not None:
            later_s = sum(after.delay_ns for after in way[place:]) / 1e9
            from_s, to_s = (t_s - later_s for t_s in span_s)
            times, values = [from_s], [float(hop.direction.rate_bps)]
            for t_s, rate_bps in steps[hop.place]:
                times.append(min(max(t_s, from_s), to_s))
                values.append(rate_bps)
            lengths = [end - begin for begin, end in zip(times, [*times[1:], to_s], strict=True)]
            rates.append(sum(map(mul, lengths, values)) / (to_s - from_s))
    return min(rates)


def _steps(plan: Plan, hop: Hop) -> list[tuple[float, float]]:
    """When a hop's rate changes (seconds since the epoch), and to what, in bit/s."""
    link, direction = hop.place
    steps = [step for step in plan.cell.events if isinstance(step, LinkStep) and step.change == "rate"]
    mine = [step for step in steps if step.link == link and direction in step.directions]
    return sorted((step.t_ns / 1e9, float(step.value)) for step in mine)


def queue_probe(plan: Plan, hop: Hop) -> Observer | None:
    """The probe of the queue before a hop, if there is one."""
    place = (hop.link.name, hop.direction.name, "queue")
    return next((probe for probe in plan.cell.probes if probe.measured_stage == place), None)


def capture_near(plan: Plan, node: str) -> Observer | None:
    """The capture that sees all packets of a host: on the host itself, or on the monitor of its switch."""
    mirrors = {switch.name: switch.mirror_to for switch in plan.network.nodes if isinstance(switch, Switch)}
    directions = (direction for link in plan.network.links for direction in link.directions)
    monitors = [mirrors.get(direction.to) for direction in directions if direction.from_ == node]
    whole = [probe for probe in plan.cell.probes if probe.captures_all]
    return next((probe for place in (node, *monitors) for probe in whole if probe.captured_node == place), None)
