"""A cell on a network: which one it is, what goes wrong on the links, who sends, who watches, and when it is ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from scpslab.plan.error_models import Errors
from scpslab.plan.events import Step
from scpslab.plan.mininet import MininetScript
from scpslab.plan.network import NetworkPlan
from scpslab.plan.probes import Probe
from scpslab.plan.schema import Range
from scpslab.plan.services import Daemon, Service
from scpslab.plan.values import Amount, AxisValue, CellId, KernelSeed, Label, Name, Period, Probability, Seed
from scpslab.plan.workloads import Workload

# Seconds that 64 signed bits hold in nanoseconds.
LONGEST_S = 9_223_372_037

Prompt = Literal["mininet", "bash"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """When a cell that hangs is ended, and where time is real, how late the lab may be."""

    virtual_s: Annotated[int, Range(1, LONGEST_S)]
    wall_s: Annotated[int, Range(1, LONGEST_S)]
    tick_ns: Period | None = None
    late_ns: Period | None = None
    late_share: Probability | None = None


@dataclass(frozen=True, kw_only=True)
class Impairment:
    """What goes wrong in a direction of a link.

    `seed`: what jitter and packets that arrive twice are drawn from, if there are any.
    """

    link: Name
    direction: Name
    errors: Errors | None = None
    duplicate: Probability | None = None
    seed: Seed | None = None


@dataclass(frozen=True, kw_only=True)
class CellPlan:
    """A point of the sweep and one repeat of it. `shell`: a person uses it, at Mininet's prompt or the guest's own.

    `services` start in their order, each when the one before is ready. `packets`: how many lines the record of packets
    has room for, a line for each link that a packet passes; None: there is no record.
    """

    id: CellId
    scenario: Label
    axes: dict[Label, AxisValue]
    repeat: Amount
    kernel_seed: KernelSeed
    limits: Limits
    impairments: tuple[Impairment, ...] = ()
    workloads: tuple[Workload, ...] = ()
    probes: tuple[Probe, ...] = ()
    services: tuple[Service, ...] = ()
    events: tuple[Step, ...] = ()
    mininet: MininetScript | None = None
    shell: Prompt | None = None
    packets: Annotated[int, Range(1)] | None = None

    def impairment(self, link: str, direction: str) -> Impairment | None:
        """What goes wrong in a direction; None where nothing does."""
        return next((one for one in self.impairments if (one.link, one.direction) == (link, direction)), None)

    def errors(self, link: str, direction: str) -> Errors | None:
        """The bit errors, drop list and outages of a direction, if it has any."""
        impairment = self.impairment(link, direction)
        return impairment.errors if impairment else None

    def gateway_of(self, node: str) -> Daemon | None:
        """The gateway of a node's own programs, if it has one."""
        own = (service for service in self.services if service.node == node)
        return next((service for service in own if service.host_settings is not None), None)


FORMAT: Literal[2] = 2


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything a cell needs (docs/plan-format.md): a network, and the cell on it."""

    format_: Literal[2] = FORMAT
    network: NetworkPlan
    cell: CellPlan
