"""A cell on a network: which one it is, what goes wrong on the links, who sends, who watches, and when it is ended."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from operator import itemgetter
from typing import Annotated, Literal

from scpslab.core import units
from scpslab.core.problems import Problem
from scpslab.plan.error_models import Errors
from scpslab.plan.events import LinkStep, Step
from scpslab.plan.links import FOR_EVER_NS, Direction, Link, rate_problems
from scpslab.plan.mininet import MininetScript
from scpslab.plan.network import NetworkPlan
from scpslab.plan.probes import Probe
from scpslab.plan.profiles import Profile
from scpslab.plan.schema import Part, Range
from scpslab.plan.services import Daemon, Service
from scpslab.plan.values import Amount, AxisValue, CellId, KernelSeed, Label, Name, Period, Probability, Seed, Size
from scpslab.plan.workloads import Traffic, Workload

LARGEST_BURST_BYTES = 1 << 30  # in 10^-9 bytes it fits into 64 bits, twice
# With every delay and queue that there may be besides, fq can still hold the packet.
LONGEST_EXTRA_NS = 60 * 10**9
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


class Policer(Part):
    """A token bucket without a queue: what it has no credit for is dropped, before the direction's queue."""

    rate_bps: Amount
    burst_bytes: Annotated[int, Range(1, LARGEST_BURST_BYTES)]


class LatePackets(Part):
    """Packets that are under way for longer than others: their numbers, among those of at least `min_bytes`."""

    packets: tuple[Amount, ...]
    by_ns: Period
    min_bytes: Size


class Impairment(Part):
    """What goes wrong in a direction of a link, and what it does over time.

    `seed`: what jitter and packets that arrive twice are drawn from, if there are any. `aggregate_ns`: packets begin to
    leave at multiples of this time since the epoch.
    """

    link: Name
    direction: Name
    errors: Errors | None = None
    duplicate: Probability | None = None
    seed: Seed | None = None
    profile: Profile | None = None
    policer: Policer | None = None
    aggregate_ns: Period | None = None
    late: LatePackets | None = None

    def misfits(self, link: Link, direction: Direction, changes: Collection[str]) -> Iterator[Problem]:
        """What of policer, aggregate and late packets does not fit the direction, its profile, and what events change
        there (rate, delay, ber).
        """
        queue, profile = direction.queue, self.profile
        if self.policer is not None:
            full = link.mtu_bytes + direction.overhead_bytes
            yield from (one.within("policer") for one in rate_problems(("rate_bps",), self.policer.rate_bps))
            if not full <= self.policer.burst_bytes <= LARGEST_BURST_BYTES:
                found = f"a burst of {units.text('size', self.policer.burst_bytes)}"
                expected = f"{full} B, with which full packets pass, to {LARGEST_BURST_BYTES} B"
                yield Problem(("policer", "burst_bytes"), found, expected, "Correct the burst.")
        if self.aggregate_ns is not None:
            if queue is None or not queue.serialises:
                found = f"an aggregate beside {f'the discipline {queue.discipline}' if queue else 'no queue'}"
                yield Problem(("aggregate_ns",), found, "a rate and a drop-tail queue", "Choose another discipline.")
            yield from _too_long("aggregate_ns", self.aggregate_ns)
            if profile is not None and "packets" in profile.columns:
                found = "an aggregate beside a profile of delivery opportunities"
                yield Problem(("aggregate_ns",), found, "one of them", "Remove one.")
        if self.late is not None:
            yield from _too_long("late", self.late.by_ns)
            others = {
                "delay_table": direction.delay_table is not None,
                "jitter": direction.jitter_ns > 0,
                "an event that changes the delay": "delay" in changes,
                "a managed queue, whose packets stage 2 keeps in order": queue is not None and not queue.serialises,
            }
            for word in (word for word, is_there in others.items() if is_there):
                yield Problem(("late",), f"late packets beside {word}", "one of them", "Remove one.")
            if link.via is None:
                found = "late packets on a link without a relay"
                yield Problem(("late",), found, "a link that goes through a switch (via)", "Choose such a link.")


def _too_long(key: str, time_ns: int) -> Iterator[Problem]:
    if time_ns > LONGEST_EXTRA_NS:
        yield Problem((key,), units.text("duration", time_ns), "at most 60 s", "Correct the time.")


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

    def own_addresses(self, network: NetworkPlan) -> Iterator[tuple[str, str, str]]:
        """Address, node and owner of all from which no socket of the kernel's sends, but a program of SCPS does."""
        for one in self.workloads:
            for node, end in ((one.from_, one.sending_program), (one.to, one.receiving_program)):
                if end is not None:
                    yield end.ip, node, one.name
        for service in self.services:
            yield from ((ip, service.node, service.name) for ip in service.own_ips(network))

    def impairment(self, link: str, direction: str) -> Impairment | None:
        """What goes wrong in a direction; None where nothing does."""
        return next((one for one in self.impairments if (one.link, one.direction) == (link, direction)), None)

    def errors(self, link: str, direction: str) -> Errors | None:
        """The bit errors, drop list and outages of a direction, if it has any."""
        impairment = self.impairment(link, direction)
        return impairment.errors if impairment else None

    def moved(self, link: str, direction: str) -> frozenset[str]:
        """What a profile says of a direction."""
        impairment = self.impairment(link, direction)
        return impairment.profile.moves if impairment and impairment.profile else frozenset()

    def gateway_of(self, node: str) -> Daemon | None:
        """The gateway of a node's own programs, if it has one."""
        own = (service for service in self.services if service.node == node)
        return next((service for service in own if service.host_settings is not None), None)


def stretches_of(cell: CellPlan, link: str, direction: Direction) -> tuple[tuple[int, int], ...]:
    """The rates of a direction whose rate the cell's events change, or whose packets it holds back: until when each
    holds (ns), and bit/s.
    """
    own = (step for step in cell.events if isinstance(step, LinkStep) and step.change == "rate")
    steps = sorted(
        ((step.at_ns, int(step.value)) for step in own if step.link == link and direction.name in step.directions),
        key=itemgetter(0),
    )
    impairment = cell.impairment(link, direction.name)
    is_held = impairment is not None and impairment.aggregate_ns is not None
    if not (steps or is_held) or direction.rate_bps is None:
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

    @property
    def as_planned(self) -> Plan:
        """The plan before anybody ran it: of what follows a line of a file, nobody knows when it comes."""
        return self.at_instants({number: None for number, step in enumerate(self.cell.events, start=1) if step.after})

    def at_instants(self, t_ns: Mapping[int, int | None]) -> Plan:
        """The plan with these instants of steps that follow a line, by their numbers."""
        if not t_ns:
            return self
        steps = enumerate(self.cell.events, start=1)
        events = tuple(
            replace(step, t_ns=t_ns[number]) if number in t_ns else step  # type: ignore[arg-type]  # no route follows a line
            for number, step in steps
        )
        return replace(self, cell=replace(self.cell, events=events))
