"""Services as plans know them, daemons of nodes that a cell's workloads and commands use: a folder a kind in
scpslab.kinds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from scpslab.core.kinds import Layer
from scpslab.plan.network import NetworkPlan
from scpslab.plan.nodes import Host, Router, ScpsRouter
from scpslab.plan.places import Problem
from scpslab.plan.schema import Kinds
from scpslab.plan.values import Name, Word


@dataclass(frozen=True, kw_only=True)
class Daemon:
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
    # Whether it writes records/NAME.jsonl.
    writes_record: ClassVar[bool] = False

    @property
    def listens_at(self) -> int | None:
        """The port of its node that is no other service's; None if it says of none."""
        return None

    def can_run_on(self, node: Host | Router | ScpsRouter) -> bool:
        """Whether its node may be this one."""
        may_make_devices = node.container is None or "/dev/net/tun" in node.container.devices
        return isinstance(node, self.RUNS_ON) and (may_make_devices or not self.makes_device)

    def problems(self, network: NetworkPlan) -> Iterable[Problem]:
        """Keys whose values do not fit each other or the network, once its node is known."""
        return ()


SERVICES: Layer[type[Daemon]] = Layer("services", "plan")
Service = Annotated[Daemon, Kinds("kind", SERVICES)]
