"""What must hold between the parts of a scenario and its topology: names that exist, quantities that can be.

Form is the model's business.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from scpslab.core import units
from scpslab.core.choices import one_of
from scpslab.documents.places import Places
from scpslab.documents.yaml_lines import KeyPath, Problem
from scpslab.plan.consistency import delay_problems, rate_problems
from scpslab.plan.links import Link
from scpslab.plan.network import NetworkPlan
from scpslab.plan.np import LAN
from scpslab.plan.services import SERVICES
from scpslab.plan.topology import description as topology
from scpslab.plan.topology.description import Network
from scpslab.plan.topology.interfaces import addresses
from scpslab.scenario.ends import survey, with_routes
from scpslab.scenario.links import problems as link_problems
from scpslab.scenario.model import LinkStep, RunStep, ScenarioFile
from scpslab.scenario.model.sweep import axis_values
from scpslab.scenario.topologies import Topologies, TopologyError
from scpslab.scenario.traffic import (
    LARGEST_MTU,
    images_of_others,
    names_twice,
    probe_problems,
    too_late,
    too_little_memory,
    workload_problems,
)

SMALLEST_MTU = 68  # RFC 791


def describe(model: ScenarioFile, places: Places, topologies: Topologies) -> topology.Network:
    """The scenario's topology with its parameters, and with the scenario's routes.

    Raises:
        ScenarioError: unknown topology, unknown parameters, values that do not fit, or routes that lead nowhere.
    """
    try:
        found_topology = topologies.find(model.topology, places.path.parent)
    except TopologyError as error:
        raise places.error([(("topology",), str(error))]) from error
    parameters = found_topology.parameters
    declared = parameters.declared
    found: list[Problem] = []
    for name, value in model.parameters.items():
        if name not in declared:
            found.append((("parameters", name), f'found the unknown parameter "{name}"; {one_of(name, declared)}'))
            continue
        try:
            declared[name].read(value)
        except units.UnitError as error:
            found.append((("parameters", name), f"{error}. Correct the value."))
    if found:
        raise places.error(found)
    try:
        network = found_topology.describe(parameters.read(model.parameters))
    except TopologyError as error:
        raise places.error([(("topology",), str(error))]) from error
    network, wrong = with_routes(model, network)
    if wrong:
        raise places.error(wrong)
    for mtu in sorted({link.mtu_bytes for link in network.links if not SMALLEST_MTU <= link.mtu_bytes <= LARGEST_MTU}):
        raise places.error(
            [
                (
                    ("parameters", "mtu"),
                    f"found an MTU of {mtu} B; expected {SMALLEST_MTU} B to {LARGEST_MTU} B. Correct the value.",
                )
            ]
        )
    return network


def problems(model: ScenarioFile, network: topology.Network, folder: Path) -> list[Problem]:
    """Everything that does not fit; `folder` is where data files are looked for."""
    hosts = [node.name for node in network.nodes if node.kind == "host"]
    found: list[Problem] = []
    if not model.workloads and not model.script:
        found.append(
            (
                ("workloads",),
                "found neither workloads nor a script; expected something that generates traffic. Add one of them.",
            )
        )
    found += [(("hosts", name), f'found "{name}"; {one_of(name, hosts)}') for name in model.hosts if name not in hosts]
    routers = [node.name for node in network.nodes if node.kind == "scps-router"]
    found += [
        (("routers", name), f'found "{name}"; {one_of(name, routers)}') for name in model.routers if name not in routers
    ]
    for name in routers:
        known = _interfaces(network, name)
        found += [
            (("routers", name, "sp", at), f'found "{at}"; {one_of(at, known)}')
            for at in model.router(name).sp
            if at not in known
        ]
    found += _containers(model, network)
    found += _hosts(model)
    found += images_of_others(model)
    surveyed = survey(model, network)
    found += link_problems(model, surveyed.network, folder)
    found += names_twice(model, network)
    found += workload_problems(model, surveyed, folder)
    found += _script(model, surveyed.network)
    found += _services(model, network)
    found += probe_problems(model, network)
    found += _sweep(model)
    known = [workload.name for workload in model.workloads]
    found += [
        (("checks", index, "of"), f'found "{check.of}"; {one_of(check.of, known)}')
        for index, check in enumerate(model.checks)
        if check.of is not None and check.of not in known
    ]
    if not found:
        found += too_little_memory(model)
    return found


def _containers(model: ScenarioFile, network: topology.Network) -> Iterator[Problem]:
    if model.containers == "docker" and any(
        link.serial is not None and not link.serial.is_np for link in network.links
    ):
        yield (
            ("containers",),
            (
                "found docker with PPP on a serial link, which needs rights that no container has; "
                "expected process. Leave containers out."
            ),
        )


def _interfaces(network: topology.Network, router: str) -> list[str]:
    """The interfaces of a router of SCPS-NP: one for its LANs, and its serial links."""
    links = [link for link in network.links if router in (link.a, link.b)]
    return [
        *([LAN] if any(link.serial is None for link in links) else []),
        *(link.name for link in links if link.serial is not None),
    ]


def _hosts(model: ScenarioFile) -> Iterator[Problem]:
    for name, host in sorted(model.hosts.items()):
        for at, text in host.problems(model.containers):
            yield ("hosts", name, *at), text


def _script(model: ScenarioFile, network: NetworkPlan) -> Iterator[Problem]:
    links = {link.name: link for link in network.links}
    nodes = [node.name for node in network.speaking]
    for index, step in enumerate(model.script or ()):
        at: KeyPath = ("script", index)
        if text := too_late(step.at, model.limits.virtual):
            yield (*at, "at"), text
        if isinstance(step, RunStep):
            if step.node not in nodes:
                yield (*at, "node"), f'found "{step.node}"; {one_of(step.node, nodes)}'
            continue
        yield from (((*at, *key), text) for key, text in _link_step(step, links))


def _link_step(step: LinkStep, links: Mapping[str, Link]) -> Iterator[Problem]:
    """What does not fit of a step that changes a link, with its key."""
    if step.link not in links:
        yield ("link",), f'found "{step.link}"; {one_of(step.link, links)}'
        return
    link = links[step.link]
    chosen = [direction for direction in link.directions if step.direction in (None, direction.name)]
    if not chosen:
        names = [direction.name for direction in link.directions]
        yield ("direction",), f'found "{step.direction}"; {one_of(str(step.direction), names)}'
    if step.delay is not None and link.via is None:
        yield (
            ("delay",),
            (
                f"found a delay of {step.link}, which has no relay; expected a link that goes through a switch. "
                "Choose another link."
            ),
        )
    if step.delay is not None:
        yield from (((key,), text) for key, text in delay_problems("delay", step.delay))
    if step.rate is not None and any(direction.queue is None or not direction.queue.serialises for direction in chosen):
        yield (
            ("rate",),
            (
                f"found a rate of {step.link}, which has no serialiser with a drop-tail queue; expected one. "
                "Choose another link."
            ),
        )
    if step.rate is not None:
        yield from (((key,), text) for key, text in rate_problems("rate", step.rate))


def idle_skips(whole: ScenarioFile) -> Iterator[Problem]:
    """Entries of skip with a value that its axis has neither in the file nor in a variant.

    An override may leave values out, so only the file is asked.
    """
    for index, skip in enumerate(whole.skip):
        for axis, value in skip.items():
            kept = [other for variant in whole.variants.values() for other in variant.sweep.get(axis, ())]
            known = [*axis_values(whole.sweep[axis]), *kept]
            if value not in known:
                yield ("skip", index, axis), f'found "{value}", which matches nothing; {one_of(value, known)}'


def _services(model: ScenarioFile, network: Network) -> Iterator[tuple[KeyPath, str]]:
    """Nodes that are none of a kind's, names that others have, ports that two share, and what the kinds say."""
    names = {workload.name for workload in model.workloads}
    ports: set[tuple[str, int]] = set()
    alone: set[tuple[str, str]] = set()
    known = {str(one.ip.ip): one.node for one in addresses(network)} if model.services else {}
    for index, service in enumerate(model.services):
        kinds = {kind.kind for kind in SERVICES[service.kind].RUNS_ON}
        nodes = [node.name for node in network.nodes if node.kind in kinds]
        if service.node not in nodes:
            yield ("services", index, "node"), f'found "{service.node}"; {one_of(service.node, nodes)}'
        if service.name in names:
            found = f'found the name "{service.name}", which a workload or another service has'
            yield ("services", index, "name"), f"{found}; expected a name of its own. Give it another name."
        names.add(service.name)
        if service.is_alone and (service.kind, service.node) in alone:
            found = f"found a second {service.kind} on {service.node}"
            expected = "expected one, for both would have the same UDP port"
            yield ("services", index, "node"), f"{found}; {expected}. Remove one."
        alone.add((service.kind, service.node))
        yield from ((("services", index, *at), text) for at, text in service.problems(known))
        if (port := service.listens_at) is not None:
            if (service.node, port) in ports:
                found = f"found {port}, which another service on {service.node} waits for"
                expected = "expected a port of its own"
                yield ("services", index, "ready_port"), f"{found}; {expected}. Let it listen at another port."
            ports.add((service.node, port))


def _sweep(model: ScenarioFile) -> Iterator[Problem]:
    for axis, spec in model.sweep.items():
        values = [str(value) for value in axis_values(spec)]
        if len(set(values)) < len(values):
            yield (
                ("sweep", axis),
                "found a value twice; expected each once. Remove one; more of the same is what repeats are for.",
            )
    for index, skip in enumerate(model.skip):
        for axis in skip:
            if axis not in model.sweep:
                yield ("skip", index, axis), f'found the axis "{axis}"; {one_of(axis, model.sweep)}'
