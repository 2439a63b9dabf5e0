"""Services as plans know them, daemons of nodes that a cell's workloads and commands use: a folder a kind in
scpslab.kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, ClassVar

from scpslab.core.kinds import Registered, Registry
from scpslab.core.problems import KeyPath, Problem
from scpslab.plan.network import NetworkPlan
from scpslab.plan.nodes import Host, Router, ScpsRouter
from scpslab.plan.places import twice, unknown
from scpslab.plan.schema import Kinds, Part, shown
from scpslab.plan.values import AxisValue, Name, Word

SERVICES: Registry[type[Daemon]] = Registry("services", "plan")


class Daemon(Registered, Part, registry=SERVICES):
    """A program of a node that runs until the cell ends."""

    name: Name
    kind: Word
    node: Name

    # The nodes that it runs on.
    RUNS_ON: ClassVar[tuple[type[Host | Router | ScpsRouter], ...]] = (Host, Router, ScpsRouter)
    # Whether it makes a TUN device: a container needs the right to.
    makes_device: ClassVar[bool] = False
    # Whether it is a `scps` program, whatever the stack of its node is.
    runs_scps: ClassVar[bool] = False
    # Whether a node has one at most.
    is_alone: ClassVar[bool] = False
    # Whether it writes records/NAME.jsonl.
    writes_record: ClassVar[bool] = False

    @property
    def host_settings(self) -> Mapping[str, AxisValue] | None:
        """What it speaks SCPS-TP with for the unmodified programs of its own node; None where it does not."""
        return None

    @property
    def listens_at(self) -> int | None:
        """The port of its node that is no other service's; None if it says of none."""
        return None

    def own_ips(self, network: NetworkPlan) -> tuple[str, ...]:
        """The addresses from which it sends, and no socket of the kernel's does."""
        return ()

    @classmethod
    def can_run_on(cls, node: Host | Router | ScpsRouter) -> bool:
        """Whether its node may be this one."""
        may_make_devices = node.container is None or "/dev/net/tun" in node.container.devices
        return isinstance(node, cls.RUNS_ON) and (may_make_devices or not cls.makes_device)

    def problems(self, network: NetworkPlan) -> Iterable[Problem]:
        """Keys whose values do not fit each other or the network, once its node is known."""
        return ()


Service = Annotated[Daemon, Kinds("kind", SERVICES)]


# A service as the rules of services among each other know it: its kind, name, node, and the port where it listens.
Asked = tuple[str, str, str, int | None]


def misplaced(
    services: Iterable[tuple[KeyPath, Asked]], others: Iterable[str], network: NetworkPlan
) -> Iterator[Problem]:
    """Services on nodes that do not have their programs, with the name of one of the `others` or of another service,
    or two where a node has one only: of a kind, or behind a port.
    """
    known = list(services)
    for at, (kind, _, node, _) in known:
        nodes = [one.name for one in network.speaking if SERVICES[kind].can_run_on(one)]
        if node not in nodes:
            yield unknown((*at, "node"), node, nodes)
    names: list[tuple[KeyPath | None, str]] = [(None, name) for name in others]
    for place, name in twice([*names, *((at, name) for at, (_, name, _, _) in known)]):
        if place is not None:
            found = f"the name {shown(name)}, which a workload or another service has"
            yield Problem((*place, "name"), found, "a name of its own", "Give it another name.")
    alone = [(at, (kind, node)) for at, (kind, _, node, _) in known if SERVICES[kind].is_alone]
    for at, (kind, node) in twice(alone):
        expected = "one, for both would have the same UDP port"
        yield Problem((*at, "node"), f"a second {kind} on {node}", expected, "Remove one.")
    ports = [(at, (node, port)) for at, (_, _, node, port) in known if port is not None]
    for at, (node, port) in twice(ports):
        found = f"{port}, which another service on {node} waits for"
        yield Problem((*at, "ready_port"), found, "a port of its own", "Let it listen at another port.")
