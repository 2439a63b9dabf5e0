"""What chance does to a cell: what a plan has drawn, and what else makes one repeat another."""

from collections.abc import Iterator

from scpslab.plan import Plan
from scpslab.plan.disciplines import DISCIPLINES
from scpslab.plan.error_models import NO_MODEL
from scpslab.plan.events import LinkStep, RunStep

# Congestion controls for which the kernel draws, and the workloads whose programs draw nothing that shapes traffic.
DRAWING = frozenset(("bbr", "cdg"))
SETTLED = frozenset(("background", "bulk", "fp", "ftp", "iperf3", "mix", "ping"))


def drawn(plan: Plan) -> dict[str, object]:
    """What chance does to a cell, by place: the errors of every direction, disorder, random traffic.

    Not the kernel's own draws (ports, sequence numbers).
    """
    return dict(_drawn(plan))


def chances(plan: Plan) -> tuple[str, ...]:
    """What can make one repeat of a cell another: what is drawn for it, what its kernel draws meanwhile (the phase of
    BBR's probes, CDG's backoff, RED's drops, delays of IPv6), and programs of which nobody knows what they draw.
    """
    hosts, network = plan.network.hosts, plan.network
    controls = {host.sysctls.get("net.ipv4.tcp_congestion_control", "") for host in hosts.values()}
    controls |= {one.own_control or "" for one in plan.cell.workloads}
    queues = {way.queue.discipline for link in network.links for way in link.directions if way.queue}
    kinds = {one.kind for one in plan.cell.workloads} - SETTLED
    kinds |= {one.kind for one in plan.cell.services if one.kind == "command"}
    found = [*drawn(plan), *sorted(controls & DRAWING), *sorted(kinds)]
    found += sorted(name for name in queues if DISCIPLINES[name].DRAWS)
    found += ["commands"] if any(isinstance(step, RunStep) for step in plan.cell.events) else []
    found += ["IPv6"] if any(":" in (end.ip or "") for link in network.links for end in link.ends) else []
    return tuple(found)


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
            yield f"errors of {step.link} from {step.at_ns / 1e9:g} s on", (step.directions, step.value, step.seeds)
