"""Daemons of nodes, as scenarios and planning know them: a folder a kind in scpslab.kinds.

Some are named by scenarios, others the lab has of its own: SCPS-NP, of which nodes know each other and the addresses of
`scps` programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol

from scpslab.core.kinds import Registered, Registry
from scpslab.core.problems import Problem
from scpslab.documents.parts import OneOfKinds, Part
from scpslab.plan.network import NetworkPlan
from scpslab.plan.np import SERIAL_HOP, NpEnd, NpHop, NpHost
from scpslab.plan.paths import way
from scpslab.plan.serial_links import SerialLink
from scpslab.plan.services import SERVICES, Daemon
from scpslab.scenario.kinds import planned_from
from scpslab.scenario.stacks import HostPart
from scpslab.scenario.workloads import Setting, Traffic

ADDRESS = "198.18.{host}.{program}"
ROUTER_PROGRAM = 1
# An NP address has eight bits for the host, and seven for a program of it.
MOST_HOSTS, MOST_PROGRAMS = 255, 127


def np_address(host: int, program: int) -> str:
    """The NP address of a program: even, as an end system's is (scps-np §1.6)."""
    return f"{host << 8 | program << 1:04x}"


@dataclass(frozen=True)
class NpNetwork:
    """The NP nodes of a network: `numbers` of those with addresses, how many `programs` each has, and the routers."""

    network: NetworkPlan
    numbers: Mapping[str, int]
    programs: Mapping[str, int]
    routers: tuple[str, ...]

    def hosts(self) -> tuple[NpHost, ...]:
        """Everybody's addresses: the same table on every node."""
        return tuple(host for _, host in self._programs())

    def _programs(self) -> Iterator[tuple[str, NpHost]]:
        """Every program's node and addresses."""
        for name, count in self.programs.items():
            for program in range(1, count + 1):
                ip = ADDRESS.format(host=self.numbers[name], program=program)
                yield name, NpHost(ip=ip, np=np_address(self.numbers[name], program))

    def end(self, node: str, default_precedence: int) -> NpEnd:
        """What a program on a host knows."""
        hosts = self.hosts()
        ips = {host.np: host.ip for host in hosts}
        return NpEnd(
            hosts=hosts,
            next_hops=tuple(hop for hop in self.next_hops(node) if hop.via != ips[hop.to]),
            default_precedence=default_precedence,
            believed=tuple(self.router_ip(router) for router in self.routers),
        )

    def router_ip(self, router: str) -> str:
        """The address of a router's program."""
        return ADDRESS.format(host=self.numbers[router], program=ROUTER_PROGRAM)

    def next_hops(self, node: str) -> tuple[NpHop, ...]:
        """The next NP node to every program elsewhere that can be reached."""
        elsewhere = ((name, host) for name, host in self._programs() if name != node)
        hops = ((host.np, self._via(node, name, host.ip)) for name, host in elsewhere)
        return tuple(NpHop(to=to, via=via) for to, via in hops if via is not None)

    def _via(self, node: str, other: str, ip: str) -> str | None:
        """The link address of the first NP node on the way to a program of `other`, which has the address `ip`."""
        for hop in way(self.network.all_links, node, other):
            reached = hop.direction.to
            if isinstance(hop.link, SerialLink):
                return SERIAL_HOP
            if reached == other:
                return ip
            if reached in self.routers:
                return self.router_ip(reached)
        return None


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
