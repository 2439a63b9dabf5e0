"""What must hold between services and the rest of a scenario."""

from __future__ import annotations

from collections.abc import Iterator

from scpslab.core.choices import one_of
from scpslab.documents.yaml_lines import KeyPath
from scpslab.plan.topology.description import Network
from scpslab.plan.topology.interfaces import addresses
from scpslab.scenario.model import ScenarioFile
from scpslab.scenario.services import KINDS


def service_problems(model: ScenarioFile, network: Network) -> Iterator[tuple[KeyPath, str]]:
    """Nodes that are none of a kind's, names that workloads have, ports that two services of one node would share, and what the kinds say."""
    names = {workload.name for workload in model.workloads}
    ports: set[tuple[str, int]] = set()
    alone: set[tuple[str, str]] = set()
    known = {str(one.ip.ip): one.node for one in addresses(network)} if model.services else {}
    for index, service in enumerate(model.services):
        kind = KINDS[service.kind]
        nodes = [node.name for node in network.nodes if node.kind in kind.nodes]
        if service.node not in nodes:
            yield ("services", index, "node"), f'found "{service.node}"; {one_of(service.node, nodes)}'
        if service.name in names:
            found = f'found the name "{service.name}", which a workload or another service has'
            yield ("services", index, "name"), f"{found}; expected a name of its own. Give it another name."
        names.add(service.name)
        if kind.is_alone and (service.kind, service.node) in alone:
            found = f"found a second {service.kind} on {service.node}"
            yield ("services", index, "node"), f"{found}; expected one, for both would have the same UDP port. Remove one."
        alone.add((service.kind, service.node))
        yield from ((("services", index, *at), text) for at, text in kind.problems(service, known))
        if (port := kind.listens_at(service)) is not None:
            if (service.node, port) in ports:
                found = f"found {port}, which another service on {service.node} waits for"
                yield ("services", index, "ready_port"), f"{found}; expected a port of its own. Let it listen at another port."
            ports.add((service.node, port))
