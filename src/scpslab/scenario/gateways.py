"""Hosts of stack `scps` with a gateway of their own (`scps gateway`), because unmodified programs run there: workloads,
and commands of script and services.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from scpslab.core.names import node_and_link

if TYPE_CHECKING:
    from scpslab.scenario.model import ScenarioFile


def gateway_hosts(model: ScenarioFile, hosts: list[str]) -> list[str]:
    """Those of the network's hosts.

    What commands do nobody knows, so one is enough; a host that cannot have a gateway has its kernel's TCP for them.
    """
    busy = _commanded(model) | {node_and_link(end)[0] for ends in _unmodified(model) for end in ends}
    return [host for host in hosts if host in busy and _can_have_one(model, host)]


def gateway_nodes(model: ScenarioFile, hosts: list[str]) -> set[str]:
    """The nodes where a gateway makes a device: those hosts, and nodes with a service that does."""
    return {
        *gateway_hosts(model, hosts),
        *(service.node for service in model.services if service.makes_device),
    }


def peers(model: ScenarioFile, host: str) -> set[str] | None:
    """The other ends of the workloads that need the gateway of `host`, as the scenario writes them; None if it may be
    any, because commands run there.
    """
    if host in _commanded(model):
        return None
    pairs = [pair for first, second in _unmodified(model) for pair in ((first, second), (second, first))]
    return {other for own, other in pairs if node_and_link(own)[0] == host}


def _commanded(model: ScenarioFile) -> set[str]:
    steps = {step.node for step in model.script or () if step.do == "run"}
    return steps | {service.node for service in model.services if service.runs_commands}


def _unmodified(model: ScenarioFile) -> Iterator[tuple[str, str]]:
    for workload in model.workloads:
        if workload.is_unmodified:
            yield workload.from_, workload.to


def _can_have_one(model: ScenarioFile, host: str) -> bool:
    part = model.host(host)
    return part.carrier.runs_scps and not part.plan().no_gateway
