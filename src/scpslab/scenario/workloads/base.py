"""What a kind of workload is to scenarios and planning, and what its functions are given."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, Protocol, TypedDict, TypeVar

from pydantic import BeforeValidator, WithJsonSchema

from scpslab.core.names import node_and_link
from scpslab.core.seeds import stream, uniform
from scpslab.documents.parts import Part, key
from scpslab.documents.quantities import Duration, Name, PositiveDuration
from scpslab.plan import workloads as planned
from scpslab.plan.ways import Way
from scpslab.scenario.stacks import HostPart, NodePlan, plan_node

if TYPE_CHECKING:
    from scpslab.documents.yaml_lines import Problem
    from scpslab.plan.np import NpEnd
    from scpslab.plan.paths import Paths

# 48 bits: whole numbers that every language and JSON reader keeps exactly.
SEED_DIGITS = 12
# A host, or HOST.LINK.
END_PATTERN = r"^[a-z][a-z0-9_-]{0,39}(\.[A-Za-z0-9_][A-Za-z0-9_+=,-]{0,99})?$"


def _is_end(value: object) -> object:
    if isinstance(value, str) and not re.fullmatch(END_PATTERN, value):
        expected = 'a host, or HOST.LINK for its address on a link, such as "ws2" or "ws2.hop"'
        raise ValueError(f'found "{value[:60]}"; expected {expected}')
    return value


End = Annotated[str, BeforeValidator(_is_end), WithJsonSchema({"type": "string", "pattern": END_PATTERN})]


class Traffic(Part):
    """The keys of every workload."""

    name: Name = key(says="Name of the workload and of its record.", example="transfer")
    from_: End = key(
        alias="from",
        says="The host that sends, or HOST.LINK: the host with its address on that link, which answers go to.",
        example="ws1",
    )
    to: End = key(
        says="The host that receives, or HOST.LINK: its address on that link, which the packets go to. Default: "
        "its first address.",
        example="ws2",
    )
    start: Duration = key(
        "1 s", says="Start time, counted from the epoch (the moment when the network is up).", example="1 s"
    )

    if TYPE_CHECKING:
        # Each kind declares it where it stands among its keys.
        kind: str

    @property
    def sender(self) -> str:
        """The host that sends."""
        return node_and_link(self.from_)[0]

    @property
    def receiver(self) -> str:
        """The host that receives."""
        return node_and_link(self.to)[0]


Model = TypeVar("Model", bound=Traffic)
Planned = TypeVar("Planned", bound=planned.Traffic)


@dataclass(frozen=True)
class Surroundings:
    """What a workload is held against in a scenario: what carries transport on a host, what nodes are, and the way
    between its ends.

    `has_np_router`: a router of SCPS-NP is on it, which forwards nothing else.
    `mtu_bytes`: the largest IP packet that fits through; `slowest_bps` None: no hop is limited; `virtual`: the limit of
    virtual time; `folder`: where the scenario's own files are.
    """

    host: Callable[[str], HostPart]
    in_containers: bool
    mtu_bytes: int
    slowest_bps: int | None
    virtual: PositiveDuration
    has_np_router: bool
    folder: Path

    def node(self, host: str) -> NodePlan:
        """What a plan will say of a host."""
        return plan_node(self.host(host))


@dataclass(frozen=True)
class Setting:
    """What workloads are planned in: what is planned for hosts, the address of every end that a workload has, and where
    seeds come from.

    `paths`: those of the network; `take_scps`: the address and device of a host's next `scps` program; `np_end`: what
    such a program knows of SCPS-NP, given its default precedence; `virtual_ns`: the limit of virtual time; `folder`:
    where the scenario's own files are.
    """

    paths: Paths
    hosts: Mapping[str, NodePlan]
    addresses: Mapping[str, str]
    root_seed: int
    repeat: int
    virtual_ns: int
    folder: Path
    take_scps: Callable[[str], tuple[str, str]]
    np_end: Callable[[str, int], NpEnd]

    def way(self, source: str, destination: str) -> Way:
        """The hops from one end of a workload to another."""
        return self.paths.path(node_and_link(source)[0], node_and_link(destination)[0], self.addresses[destination])

    def source(self, opener: str, contacted: str) -> str:
        """The address that one end contacts another one from: the one that it names, or the one that the host's routes
        give.
        """
        host, link = node_and_link(opener)
        return self.addresses[opener] if link else self.paths.source(host, self.addresses[contacted])

    def seed(self, purpose: str, *names: str) -> int:
        """A seed of the cell's repeat."""
        return int(stream(self.root_seed, purpose, *names, self.repeat)[:SEED_DIGITS], 16)

    def key_seed(self, name: str) -> str:
        """The seed of a key of SCPS-SP, of the cell's repeat."""
        return stream(self.root_seed, "scps-sp", name, self.repeat)

    def draws(self, purpose: str, name: str, number: int) -> list[float]:
        """Numbers from 0 to 1, of the cell's repeat."""
        return uniform(stream(self.root_seed, purpose, name, self.repeat), number)


class Common(TypedDict):
    """What every workload of a plan says, but for its address and whether the cell waits for it."""

    name: str
    from_: str
    to: str
    start_ns: int


def common(workload: Traffic) -> Common:
    """What a plan says of every workload."""
    return {"name": workload.name, "from_": workload.sender, "to": workload.receiver, "start_ns": workload.start}


def _no_problems(_workload: Any, _around: Surroundings) -> Iterable[Problem]:
    return ()


def _nobody(_workload: Any) -> None:
    return None


def _no_time(_planned: Any, _rate_bps: int | None) -> int:
    return 0


def _no_least_packets(_planned: Any, _rate_bps: int | None, _mtu_bytes: int) -> int:
    return 0


def _never(_workload: Any) -> bool:
    return False


def _no_packets(_workload: Any) -> int:
    return 0


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[Model, Planned]):
    """One kind of workload.

    `model`: what a scenario says of it. `plan`: its part of the plan. `problems`: what does not fit once both hosts are
    known. `serves`: the host and port where it listens. `busy_ns`: how long it takes at least, given the slowest rate
    on its way. `packets`: how many a capture may see of it. `least_packets`: how many packets of data it sends at
    least, given that rate and the smallest MTU. `is_unmodified`: its programs know the kernel's TCP only, so that
    hosts of stack `scps` need a gateway of their own. `knows_images`: hosts may be images of somebody else's.
    `needs_file`: it asks for a file beside the scenario. `is_load`: others are measured under it; a host that does
    nothing else has the image of generators.
    """

    model: type[Model]
    plan: Callable[[Model, Setting], Planned]
    problems: Callable[[Model, Surroundings], Iterable[Problem]] = _no_problems
    serves: Callable[[Model], tuple[str, int] | None] = _nobody
    busy_ns: Callable[[Planned, int | None], int] = _no_time
    packets: Callable[[Model], int] = _no_packets
    least_packets: Callable[[Planned, int | None, int], int] = _no_least_packets
    is_unmodified: Callable[[Model], bool] = _never
    knows_images: bool = False
    needs_file: bool = False
    is_load: bool = False


class HasPort(Protocol):
    """A workload with two hosts and a port."""

    @property
    def receiver(self) -> str:
        """Host that receives."""

    @property
    def port(self) -> int:
        """Port of whoever listens."""


def at_receiver(workload: HasPort) -> tuple[str, int]:
    """The receiving host listens."""
    return workload.receiver, workload.port
