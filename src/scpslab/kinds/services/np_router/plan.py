"""The program of a router of SCPS-NP, and what it is told."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from scpslab.core.problems import Problem
from scpslab.plan.network import NetworkPlan
from scpslab.plan.nodes import ScpsRouter
from scpslab.plan.np import NpHop, NpHost, NpInterface, Precedence
from scpslab.plan.places import unknown
from scpslab.plan.schema import Range
from scpslab.plan.services import Daemon
from scpslab.plan.values import Interface, Ip, WholeSeed

HopCount = Annotated[int, Range(1, 255)]


class NpRouterService(Daemon, kind="np-router"):
    """`scps router` on a `scps-router`, whose name it has: `ip` is the program's address, `device` its TUN device,
    `hosts` and `next_hops` its tables.

    It runs before any probe does, and until nothing is under way. Its counters are in records/NAME.jsonl.
    """

    kind: Literal["np-router"] = "np-router"
    ip: Ip
    device: Interface
    seed: WholeSeed
    default_precedence: Precedence
    hop_count: HopCount
    hosts: tuple[NpHost, ...]
    next_hops: tuple[NpHop, ...]
    interfaces: tuple[NpInterface, ...]

    RUNS_ON: ClassVar = (ScpsRouter,)
    runs_scps: ClassVar[bool] = True
    writes_record: ClassVar[bool] = True

    def own_ips(self, network: NetworkPlan) -> tuple[str, ...]:
        """That of the program."""
        return (self.ip,)

    def problems(self, network: NetworkPlan) -> Iterator[Problem]:
        """Interfaces that are no lines of its node, queues that cannot purge so much, and next hops that are behind
        none of its interfaces.
        """
        lines = [link.name for link in network.serial_links if self.node in {end.node for end in link.ends}]
        behind: set[str] = set()
        for number, interface in enumerate(self.interfaces):
            if interface.line is not None and interface.line not in lines:
                yield unknown(("interfaces", number, "line"), interface.line, lines)
            if interface.queue.purge >= interface.queue.limit:
                purge, limit = interface.queue.purge, interface.queue.limit
                yield Problem(("interfaces", number, "queue", "purge"), f"{purge}", f"less than the limit of {limit}")
            behind |= set(interface.neighbours)
        yield from (Problem(("next_hops",), hop.via, "a neighbour") for hop in self.next_hops if hop.via not in behind)
