"""Workloads as plans know them: a folder a kind in scpslab.kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, ClassVar

from scpslab.core.kinds import Registered, Registry
from scpslab.core.problems import Problem
from scpslab.plan.network import NetworkPlan
from scpslab.plan.places import unknown
from scpslab.plan.schema import Kinds, Part, shown
from scpslab.plan.stacks import SCPS, STACKS, ScpsEnd
from scpslab.plan.values import Amount, Ip, Name, Nanoseconds, Word

SECOND_NS = 10**9
# RFC 791 §3.1, RFC 9293 §3.1 and RFC 768, without options.
IP_TCP_HEADERS_BYTES, IP_UDP_HEADERS_BYTES = 40, 28
# RFC 7323 §3.2: ten bytes, and two that keep the data where it is fast to read.
TIMESTAMP_BYTES = 12


WORKLOADS: Registry[type[Traffic]] = Registry("workloads", "plan")


class Traffic(Registered, Part, registry=WORKLOADS):
    """Who sends to whom, from when on, and whether the cell waits for it. `drawn_start`: its start was drawn."""

    name: Name
    kind: Word
    from_: Name
    to: Name
    to_ip: Ip
    start_ns: Nanoseconds
    required: bool
    drawn_start: bool | None = None

    # Whether the `scps` program is at work in it whatever the stacks of its hosts are.
    runs_scps: ClassVar[bool] = False
    # Whether the receiving host sends packets back.
    is_answered: ClassVar[bool] = True
    # Whether its hosts may be images of somebody else's.
    knows_images: ClassVar[bool] = False

    @property
    def part_of(self) -> str:
        """The workload of the scenario that it is, or is of."""
        return self.name

    @property
    def own_control(self) -> str | None:
        """The kernel's congestion control that it asks for; None where it takes that of its host."""
        return None

    @property
    def sending_program(self) -> ScpsEnd | None:
        """The `scps` program that sends; None where the kernel does."""
        return None

    @property
    def drawn(self) -> tuple[float, ...]:
        """The random numbers that shape its traffic, drawn when the plan was made."""
        return ()

    @property
    def files(self) -> Mapping[str, str]:
        """The files beside its scenario that it has whole: the text of each by its name, which has no folder in it."""
        return {}

    @property
    def receiving_program(self) -> ScpsEnd | None:
        """The `scps` program that receives; None where the kernel does."""
        return None

    @property
    def opener(self) -> str:
        """The host that contacts the other one."""
        return self.from_

    @property
    def contacted_ip(self) -> str:
        """The address that it contacts."""
        return self.to_ip

    def busy_ns(self, rate_bps: int | None) -> int:
        """How long it takes at least, where the slowest hop on its way has this rate (None: no hop is limited)."""
        return 0

    def least_packets(self, rate_bps: int | None, mtu_bytes: int) -> int:
        """How many packets of data it sends at least, given that rate and the smallest MTU."""
        return 0

    @classmethod
    def between(cls, kind: str, from_: str, to: str, network: NetworkPlan) -> Iterator[Problem]:
        """What does not fit of the two ends of one of its kind: they are no hosts, the same one, or hosts that do not
        have its programs.
        """
        ends = (("from", from_), ("to", to))
        if missing := [unknown((key,), name, network.hosts) for key, name in ends if name not in network.hosts]:
            yield from missing
            return
        if from_ == to:
            yield Problem(("to",), f"{shown(to)} at both ends", "two hosts", "Choose another.")
        for name, stack in ((name, network.hosts[name].stack) for name in dict.fromkeys((from_, to))):
            if instead := cls.instead_of(stack):
                yield Problem(("kind",), f"{kind} with the stack {stack} on {name}", *instead)

    @classmethod
    def instead_of(cls, stack: str) -> tuple[str, str] | None:
        """What is expected where a host has this stack, and what to do; None where the workload can have such a
        host.
        """
        is_strange = STACKS[stack].is_own_image and not cls.knows_images
        return ("endpoint or program", "Use one of these kinds.") if is_strange else None

    def problems(self, network: NetworkPlan) -> Iterable[Problem]:
        """Keys whose values do not fit each other or the network, once both hosts are known."""
        return ()


class Transfer(Traffic):
    """A workload that sends a number of bytes."""

    bytes_: Amount

    def busy_ns(self, rate_bps: int | None) -> int:
        """As long as its bytes take."""
        return ns_to_send(self.bytes_, rate_bps)

    def least_packets(self, rate_bps: int | None, mtu_bytes: int) -> int:
        """Full packets for its bytes."""
        return full_packets(self.bytes_, mtu_bytes)


class ScpsTransfer(Transfer, is_mixin=True):
    """A transfer with a `scps` program at an end whose host's stack is scps; None: the kernel carries that end.

    Each kind declares the keys where they stand in its object.
    """

    from_scps: ScpsEnd | None
    to_scps: ScpsEnd | None

    @property
    def sending_program(self) -> ScpsEnd | None:
        """The program at the sending end."""
        return self.from_scps

    @property
    def receiving_program(self) -> ScpsEnd | None:
        """The program at the receiving end."""
        return self.to_scps

    def problems(self, network: NetworkPlan) -> Iterator[Problem]:
        """An end is a program exactly where its host's stack is scps."""
        for key, host, end in (("from_scps", self.from_, self.from_scps), ("to_scps", self.to, self.to_scps)):
            stack = network.hosts[host].stack
            if (end is not None) != (STACKS[stack] is SCPS):
                found = f"{'null' if end is None else 'an object'} for a host of stack {stack}"
                yield Problem((key,), found, "an object for scps only")


class FileTransfer(Transfer, is_mixin=True):
    """A transfer of a file by a client of the host that receives it, or of the one that sends it.

    Each kind declares the keys where they stand in its object.
    """

    command: str
    server_ip: Ip

    RECEIVES: ClassVar[tuple[str, ...]] = ("get", "read")

    @property
    def opener(self) -> str:
        """The client's host."""
        return self.to if self.command in self.RECEIVES else self.from_

    @property
    def contacted_ip(self) -> str:
        """The server's address."""
        return self.server_ip


def ns_to_send(sent_bytes: int, rate_bps: int | None) -> int:
    """Nanoseconds that bytes take at a rate; 0 where nothing limits it."""
    return sent_bytes * 8 * SECOND_NS // rate_bps if rate_bps else 0


def full_packets(sent_bytes: int, mtu_bytes: int) -> int:
    """Packets of TCP with timestamps that bytes fill."""
    return -(-sent_bytes // max(1, mtu_bytes - IP_TCP_HEADERS_BYTES - TIMESTAMP_BYTES))


Workload = Annotated[Traffic, Kinds("kind", WORKLOADS)]
