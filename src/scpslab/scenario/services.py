"""Daemons of nodes, as scenarios and planning know them: a folder a kind in scpslab.kinds.

Some are named by scenarios, others the lab has of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol

from scpslab.core.kinds import Registered, Registry
from scpslab.core.problems import Problem
from scpslab.documents.parts import OneOfKinds, Part
from scpslab.plan.network import NetworkPlan
from scpslab.plan.services import SERVICES, Daemon
from scpslab.scenario.kinds import planned_from
from scpslab.scenario.np import NpNetwork
from scpslab.scenario.stacks import HostPart
from scpslab.scenario.workloads import Setting, Traffic


class Around(Protocol):
    """The scenario, as far as services ask for it."""

    @property
    def workloads(self) -> Iterable[Traffic]:
        """Its workloads."""

    @property
    def services(self) -> Iterable[Service]:
        """Its services."""

    @property
    def events(self) -> Iterable[object] | None:
        """Its events."""

    def host(self, name: str) -> HostPart:
        """What it says of a host."""

    def router(self, name: str) -> Any:
        """What it says of a router of SCPS-NP."""


@dataclass(frozen=True)
class Site:
    """What services are planned in: the scenario, its network before anything is planned for it, what its workloads are
    planned in, and the nodes that speak SCPS-NP. `number`: which of the scenario it is.
    """

    model: Around
    network: NetworkPlan
    setting: Setting
    np: NpNetwork
    number: int = 0


KINDS: Registry[type[Service]] = Registry("services", "scenario")


class Service(Registered, Part, registry=KINDS):
    """What a scenario says of a service; each kind declares the keys of all with its own words, and one that scenarios
    do not name has none.

    `runs_commands`: it runs programs that know the kernel's TCP only.
    """

    runs_commands: ClassVar[bool] = False

    if TYPE_CHECKING:
        kind: str
        name: str
        node: str

    @property
    def listens_at(self) -> int | None:
        """The port that is no other service's."""
        return None

    def problems(self, network: NetworkPlan) -> Iterable[Problem]:
        """What does not fit the network."""
        return ()

    def doubts(self, network: NetworkPlan) -> Iterable[Problem]:
        """Keys whose values can hardly be meant in this network, and why."""
        return ()

    def plan(self, site: Site) -> Daemon:
        """Its part of the plan."""
        return planned_from(SERVICES[self.kind], self, **self.derived(site))

    def derived(self, site: Site) -> Mapping[str, object]:
        """What its part of the plan has besides the keys of the scenario, or in place of them."""
        return {}

    @classmethod
    def of_lab(cls, site: Site) -> Iterable[Daemon]:
        """Those of the kind that the lab has of its own in a cell."""
        return ()

    @classmethod
    def own(cls, model: Around, nodes: Mapping[str, str]) -> Mapping[str, str]:
        """The node of each of these by its name, given the kind of each node."""
        return {}


AnyService = Annotated[Service, OneOfKinds(KINDS)]


def device_nodes(model: Around, nodes: Mapping[str, str]) -> set[str]:
    """The nodes where a service makes a device, given the kind of each node."""
    making = {name for name, kind in SERVICES.items() if kind.makes_device}
    own = {node for name in making for node in KINDS[name].own(model, nodes).values()}
    return own | {service.node for service in model.services if service.kind in making}
