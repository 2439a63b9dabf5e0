"""A cell on a network: which one it is, what goes wrong on the links, who sends, who watches, and when it is ended."""

from __future__ import annotations

from operator import itemgetter
from typing import Annotated, Literal

from scpslab.plan.error_models import Errors
from scpslab.plan.events import LinkStep, Step
from scpslab.plan.links import FOR_EVER_NS, Direction
from scpslab.plan.mininet import MininetScript
from scpslab.plan.network import NetworkPlan
from scpslab.plan.probes import Probe
from scpslab.plan.profiles import Profile
from scpslab.plan.schema import Part, Range
from scpslab.plan.services import Daemon, Service
from scpslab.plan.values import Amount, AxisValue, CellId, KernelSeed, Label, Name, Period, Probability, Seed
from scpslab.plan.workloads import Traffic, Workload

# Seconds that 64 signed bits hold in nanoseconds.
LONGEST_S = 9_223_372_037

Prompt = Literal["mininet", "bash"]


class Limits(Part):
    """When a cell that hangs is ended, and where time is real, how late the lab may be."""

    virtual_s: Annotated[int, Range(1, LONGEST_S)]
    wall_s: Annotated[int, Range(1, LONGEST_S)]
    tick_ns: Period | None = None
    late_ns: Period | None = None
    late_share: Probability | None = None


class Impairment(Part):
    """What goes wrong in a direction of a link, and what it does over time.

    `seed`: what jitter and packets that arrive twice are drawn from, if there are any.
    """

    link: Name
    direction: Name
    errors: Errors | None = None
    duplicate: Probability | None = None
    seed: Seed | None = None
    profile: Profile | None = None


class CellPlan(Part):
    """A point of the sweep and one repeat of it. `shell`: a person uses it, at Mininet's prompt or the guest's own.

    `services` start in their order, each when the one before is ready. `packets`: whether every packet of every link is
    recorded; None: it is not.
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
    packets: bool | None = None

    @property
    def heads(self) -> list[Traffic]:
        """The workloads, and of those that are one in the scenario the first."""
        found: dict[str, Traffic] = {}
        for one in self.workloads:
            found.setdefault(one.part_of, one)
        return list(found.values())

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


def stretches_of(cell: CellPlan, link: str, direction: Direction) -> tuple[tuple[int, int], ...]:
    """The rates of a direction whose rate the cell's events change: until when each holds (ns), and bit/s."""
    own = (step for step in cell.events if isinstance(step, LinkStep) and step.change == "rate")
    steps = sorted(
        ((step.t_ns, int(step.value)) for step in own if step.link == link and direction.name in step.directions),
        key=itemgetter(0),
    )
    if not steps or direction.rate_bps is None:
        return ()
    rates = [direction.rate_bps, *(rate_bps for _, rate_bps in steps)]
    ends = [*(t_ns for t_ns, _ in steps), FOR_EVER_NS]
    return tuple(zip(ends, rates, strict=True))


FORMAT: Literal[2] = 2


class Plan(Part):
    """Everything a cell needs (docs/plan-format.md): a network, and the cell on it."""

    format_: Literal[2] = FORMAT
    network: NetworkPlan
    cell: CellPlan
