"""What must hold between services and the rest of a scenario."""

from __future__ import annotations

from collections.abc import Iterator

from scpslab.documents.places import one_of
from scpslab.documents.yaml_lines import KeyPath
from scpslab.scenario.model import GatewayService, ScenarioFile
from scpslab.topology.description import Network


def service_problems(model: ScenarioFile, network: Network) -> Iterator[tuple[KeyPath, str]]:
    """Nodes that are none, names that workloads have, and ports that two services of one node would share."""
    nodes = [node.name for node in network.nodes if node.kind != "switch"]
    routers = [node.name for node in network.nodes if node.kind == "router"]
    names = {workload.name for workload in model.workloads}
    ports: set[tuple[str, int]] = set()
    for index, service in enumerate(model.services):
        if service.node not in nodes:
            yield ("services", index, "node"), f'found "{service.node}"; {one_of(service.node, nodes)}'
        if service.name in names:
            found = f'found the name "{service.name}", which a workload or another service has'
            yield ("services", index, "name"), f"{found}; expected a name of its own. Give it another name."
        names.add(service.name)
        if isinstance(service, GatewayService):
            if service.node in nodes and service.node not in routers:
                yield ("services", index, "node"), f'found "{service.node}", which is no router; {one_of(service.node, routers)}'
            continue
        if service.ready_port is None:
            continue
        if (service.node, service.ready_port) in ports:
            found = f"found {service.ready_port}, which another service on {service.node} waits for"
            yield ("services", index, "ready_port"), f"{found}; expected a port of its own. Let it listen at another port."
        ports.add((service.node, service.ready_port))
