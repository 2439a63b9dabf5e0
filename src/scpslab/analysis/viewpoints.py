"""Where an experiment is looked at from: the capture that sees all packets of a host, the hop that its throughput is
compared with, the queue before that hop.
"""

from __future__ import annotations

from collections.abc import Iterator

from scpslab.plan import Plan
from scpslab.plan.cell import stretches_of
from scpslab.plan.error_models import NO_MODEL
from scpslab.plan.events import LinkStep
from scpslab.plan.flows import ways
from scpslab.plan.links import FOR_EVER_NS, Direction
from scpslab.plan.nodes import Switch
from scpslab.plan.paths import Hop, slowest
from scpslab.plan.probes import Observer
from scpslab.plan.serial_links import SerialDirection
from scpslab.plan.workloads import Traffic


def bottleneck(plan: Plan, workload: Traffic) -> Hop | None:
    """The slowest hop on a workload's way; None when none of its hops is limited."""
    return slowest(ways(plan, workload)[0])


def rates_of(plan: Plan, link: str, direction: Direction | SerialDirection) -> tuple[tuple[int, int], ...]:
    """A direction's rates: until when each holds (ns since the epoch), and bit/s (of a serial link baud). None of it is
    known of a direction without a rate, and where a profile says when packets leave: its table is in no cell's files.
    """
    impairment = plan.cell.impairment(link, direction.name)
    profile = impairment.profile if impairment else None
    if direction.rate_bps is None or (profile is not None and profile.paces):
        return ()
    changed = stretches_of(plan.cell, link, direction) if isinstance(direction, Direction) else ()
    return changed or ((FOR_EVER_NS, direction.rate_bps),)


def steady_bps(plan: Plan, hop: Hop | None) -> int | None:
    """A hop's rate where it is known and stays what it is."""
    rates = rates_of(plan, hop.link.name, hop.direction) if hop else ()
    return rates[0][1] if len(rates) == 1 else None


def bottleneck_bps(plan: Plan, workload: Traffic, span_s: tuple[float, float] | None = None) -> float | None:
    """The rate of the slowest hop on a workload's way; None when none is limited, or one is not known.

    Where events change rates, it is the least mean rate of a hop over a span of time at the receiving host (seconds
    since the epoch); None when the span is not known.
    """
    way = ways(plan, workload)[0]
    limited = [place for place, hop in enumerate(way) if hop.direction.rate_bps is not None]
    rates = {place: rates_of(plan, way[place].link.name, way[place].direction) for place in limited}
    if not rates or not all(rates.values()):
        return None
    if all(len(mine) == 1 for mine in rates.values()):
        return min(mine[0][1] for mine in rates.values())
    if span_s is None or span_s[1] <= span_s[0]:
        return None
    means: list[float] = []
    for place, mine in rates.items():
        later_ns = sum(after.delay_ns for after in way[place:])
        begins, end = from_ns, to_ns = [t_s * 1e9 - later_ns for t_s in span_s]
        carried = 0.0
        for until_ns, rate_bps in mine:
            end = min(max(until_ns, from_ns), to_ns)
            carried, begins = carried + rate_bps * (end - begins), end
        means.append(carried / (to_ns - from_ns))
    return min(means)


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


def drawn(plan: Plan) -> dict[str, object]:
    """What chance does to a cell, by place: the errors of every direction, disorder, random traffic.

    Not the kernel's own draws (ports, sequence numbers).
    """
    return dict(_drawn(plan))


def _drawn(plan: Plan) -> Iterator[tuple[str, object]]:
    for impairment in plan.cell.impairments:
        place, errors = f"{impairment.link} {impairment.direction}", impairment.errors
        if errors is not None and errors.model != NO_MODEL:
            yield f"errors of {place}", (errors.model, errors.settings, errors.seed, errors.vector_errors)
        if impairment.seed is not None:
            yield f"disorder of {place}", (impairment.duplicate, impairment.seed)
    for name in dict.fromkeys(one.part_of for one in plan.cell.workloads if one.drawn or one.drawn_start):
        parts = [one for one in plan.cell.workloads if one.part_of == name]
        yield f"traffic of {name}", [(one.start_ns, one.drawn) for one in parts]
    for step in plan.cell.events:
        if isinstance(step, LinkStep) and step.seeds:
            yield f"errors of {step.link} from {step.t_ns / 1e9:g} s on", (step.directions, step.value, step.seeds)
