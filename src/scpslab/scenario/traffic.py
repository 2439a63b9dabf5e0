"""What must hold between workloads or probes, and between them and the rest of a scenario.

What one kind asks for is in its own file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from scpslab.documents.quantities import Quantity
from scpslab.documents.yaml_lines import KeyPath, Problem
from scpslab.plan.nodes import ScpsRouter
from scpslab.plan.services import SERVICES
from scpslab.plan.topology import description as topology
from scpslab.plan.ways import slowest
from scpslab.scenario import services
from scpslab.scenario.ends import Surveyed, end_problems, sources_twice, there_and_back
from scpslab.scenario.model import ScenarioFile
from scpslab.scenario.workloads import Surroundings, Workload

LARGEST_MTU = 65_535  # what IPv4's length field holds
SMALLEST_MEMORY_BYTES = 128 << 20
LARGEST_MEMORY_BYTES = 1 << 40


def workload_problems(model: ScenarioFile, surveyed: Surveyed, folder: Path) -> Iterator[Problem]:
    """Workloads that do not fit their network, or each other; `folder` is where their files are looked for."""
    wrong = False
    for index, workload in enumerate(model.workloads):
        if text := too_late(workload.start, model.limits.virtual):
            yield ("workloads", index, "start"), text
        ends = list(end_problems(workload, surveyed))
        wrong = wrong or bool(ends)
        found = ends or workload.problems(_surroundings(workload, model, surveyed, folder))
        yield from ((("workloads", index, *at), text) for at, text in found)
    if not wrong:
        yield from sources_twice(model, surveyed)
    yield from _ports_twice(model)


def too_late(at: Quantity, limit: Quantity) -> str:
    """What is wrong with the time of something in a cell that has so much of it, "" if nothing is."""
    if at < limit:
        return ""
    return (
        f'found "{at.text}"; expected a time before limits.virtual, "{limit.text}", at which the cell ends. '
        "Let it begin earlier, or raise the limit."
    )


def probe_problems(model: ScenarioFile, network: topology.Network) -> Iterator[Problem]:
    """Probes that do not fit their network."""
    for index, probe in enumerate(model.probes):
        yield from ((("probes", index, *at), text) for at, text in probe.problems(network))


def _surroundings(workload: Workload, model: ScenarioFile, surveyed: Surveyed, folder: Path) -> Surroundings:
    found, _ = there_and_back(workload, surveyed)
    np_routers = {node.name for node in surveyed.network.nodes if isinstance(node, ScpsRouter)}
    return Surroundings(
        host=model.host,
        in_containers=model.containers == "docker",
        mtu_bytes=min((hop.mtu_bytes for hop in found), default=LARGEST_MTU),
        slowest_bps=hop.direction.rate_bps if (hop := slowest(found)) else None,
        virtual=model.limits.virtual,
        has_np_router=any(end.node in np_routers for hop in found for end in hop.link.ends),
        folder=folder,
    )


def _ports_twice(model: ScenarioFile) -> Iterator[Problem]:
    seen: dict[tuple[str, int], str] = {}
    for index, workload in enumerate(model.workloads):
        place = workload.serves()
        if place is None:
            continue
        if place in seen:
            host, port = place
            yield (
                ("workloads", index, "port"),
                f"found port {port} of {host}, where {seen[place]} listens; expected a port of its own. Add port.",
            )
        seen.setdefault(place, workload.name)


def images_of_others(model: ScenarioFile) -> Iterator[Problem]:
    """Workloads that do not know the images of somebody else's that their hosts are."""
    own = {name for name, host in model.hosts.items() if host.carrier.is_own_image}
    for index, workload in enumerate(model.workloads):
        if (taken := own & {workload.sender, workload.receiver}) and not workload.knows_images:
            found = f"found {workload.kind} with the stack {model.host(min(taken)).stack} on {min(taken)}"
            yield ("workloads", index, "kind"), f"{found}; expected endpoint. Use kind endpoint."


def names_twice(model: ScenarioFile, network: topology.Network) -> Iterator[Problem]:
    """Workloads, gateways and probes whose files would be the same."""
    named: list[tuple[KeyPath, str]] = [
        (("workloads", index), workload.name) for index, workload in enumerate(model.workloads)
    ]
    named += [
        (("probes", index), probe.file_name) for index, probe in enumerate(model.probes) if probe.folder == "records"
    ]
    # That a workload has a service's name is said where services are judged.
    workload_names = {workload.name for workload in model.workloads}
    accounts = {
        service.name: ("services", index, "name")
        for index, service in enumerate(model.services)
        if SERVICES[service.kind].writes_record
    }
    named += [(at, name) for name, at in accounts.items() if name not in workload_names]
    own = ["lab", "accounting", "script", *(link.name for link in network.links if link.serial)]
    nodes = {node.name: node.kind for node in network.nodes}
    own += [name for kind in services.KINDS.values() for name in kind.own(model, nodes)]
    seen: dict[str, KeyPath] = {}
    for at, name in [*named, *(((name,), name) for name in own)]:
        if name in seen:
            # The lab's own records have these names.
            where = seen[name] if at == (name,) else at
            yield (
                where,
                f'found the name "{name}", which another record has; expected a name of its own. Give it another name.',
            )
        seen.setdefault(name, at)
    captures: set[str] = set()
    for index, probe in enumerate(model.probes):
        if probe.folder == "captures":
            if probe.file_name in captures:
                yield (
                    ("probes", index),
                    f'found a second capture "{probe.file_name}"; expected a name of its own. Add name.',
                )
            captures.add(probe.file_name)


def too_little_memory(model: ScenarioFile) -> Iterator[Problem]:
    """Captures are kept in the guest's memory while a cell runs."""
    memory = model.limits.memory
    if memory < SMALLEST_MEMORY_BYTES:
        yield (
            ("limits", "memory"),
            f'found "{memory.text}"; expected at least {SMALLEST_MEMORY_BYTES >> 20} MiB. Raise it.',
        )
        return
    if memory > LARGEST_MEMORY_BYTES:
        yield (
            ("limits", "memory"),
            f'found "{memory.text}"; expected at most {LARGEST_MEMORY_BYTES >> 30} GiB. Lower it.',
        )
    packets = sum(workload.packets() for workload in model.workloads)
    captures = sum(probe.memory_bytes(packets) for probe in model.probes)
    if captures > memory // 2:
        found = (
            f'found captures of about {captures >> 20} MiB in a guest of "{memory.text}"; expected at most half of it'
        )
        yield ("probes",), f"{found}. Raise limits.memory to {-(-2 * captures // (1 << 20))} MiB, or capture less."
