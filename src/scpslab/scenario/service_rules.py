"""What must hold between services and the rest of a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network

from scpslab.documents.places import one_of
from scpslab.documents.yaml_lines import KeyPath
from scpslab.plan.topology.description import Network
from scpslab.plan.topology.interfaces import addresses
from scpslab.scenario.model import GatewayService, ScenarioFile

# What every link of IPv4 carries whole (RFC 791 §3.1), and what a TUN device takes.
MTU_LEAST, MTU_MOST = 576, 65_535


def service_problems(model: ScenarioFile, network: Network) -> Iterator[tuple[KeyPath, str]]:
    """Nodes that are none, names that workloads have, and ports that two services of one node would share."""
    nodes = [node.name for node in network.nodes if node.kind != "switch"]
    routers = [node.name for node in network.nodes if node.kind == "router"]
    names = {workload.name for workload in model.workloads}
    ports: set[tuple[str, int]] = set()
    gateways: set[str] = set()
    has_gateways = any(isinstance(service, GatewayService) for service in model.services)
    known = {str(one.ip.ip): one.node for one in addresses(network)} if has_gateways else {}
    for index, service in enumerate(model.services):
        places = routers if isinstance(service, GatewayService) else nodes
        if service.node not in places:
            yield ("services", index, "node"), f'found "{service.node}"; {one_of(service.node, places)}'
        if service.name in names:
            found = f'found the name "{service.name}", which a workload or another service has'
            yield ("services", index, "name"), f"{found}; expected a name of its own. Give it another name."
        names.add(service.name)
        if isinstance(service, GatewayService):
            if service.node in gateways:
                yield ("services", index, "node"), f"found a second gateway on {service.node}; expected one, for both would have the same UDP port. Remove one."
            gateways.add(service.node)
            yield from ((("services", index, *at), text) for at, text in _gateway_problems(service, known))
            continue
        if service.ready_port is None:
            continue
        if (service.node, service.ready_port) in ports:
            found = f"found {service.ready_port}, which another service on {service.node} waits for"
            yield ("services", index, "ready_port"), f"{found}; expected a port of its own. Let it listen at another port."
        ports.add((service.node, service.ready_port))


def _gateway_problems(service: GatewayService, known: Mapping[str, str]) -> Iterator[tuple[KeyPath, str]]:
    """What would keep a gateway from starting, or from ever getting a packet; `known` are the network's addresses with their nodes."""
    others = [ip for ip, node in known.items() if node != service.node]
    if service.peer not in others:
        example = others[0] if others else "10.9.0.2"
        yield ("peer",), f'found "{service.peer}"; expected the address of another node, such as {example}. Give that of the other gateway.'
    if not service.far:
        yield ("far",), "found no network; expected those behind the other gateway, such as 10.2.0.0/24. Without one no connection comes to the gateway."
    for number, text in enumerate(service.far):
        try:
            IPv4Network(text)
        except ValueError:
            found = f'found "{text}"; expected an IPv4 network whose host bits are 0, such as 10.2.0.0/24'
            yield ("far", number), f"{found}. Correct the prefix."
    mtu = service.mtu
    if not MTU_LEAST <= mtu <= MTU_MOST:
        yield ("mtu",), f'found "{service.mtu.text}"; expected {MTU_LEAST} to {MTU_MOST} B. Give the MTU of the link.'
