"""How long a plan takes before anything runs, and what a run of many needs: time of a core, virtual time, memory; as
numbers and in words.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Self

from scpslab.plan import Plan
from scpslab.plan.chances import chances
from scpslab.plan.flows import ways
from scpslab.plan.paths import Way, slowest
from scpslab.plan.workloads import SECOND_NS, Traffic

# What a cell costs in virtual time on a core of 2024: starting the lab, and each packet of data with its
# acknowledgements, on a way of three nodes.
START_S, PACKET_S = 0.7, 80e-6
# A guest and the template that it is forked from, for each core; and the program around them.
GUESTS_PER_CORE, PROGRAM_MIB = 2, 300


@dataclass(frozen=True)
class Expected:
    """What a cell takes when nothing is lost: virtual seconds, and seconds of a core."""

    virtual_s: float
    wall_s: float


def expected(plan: Plan, *, in_virtual_time: bool = True) -> Expected:
    """What a plan takes. Where time is real, the lab's seconds are those of the wall."""
    # Before a step that follows a line comes, the cell runs up to that line.
    times = 1 + sum(step.after is not None for step in plan.cell.events)
    virtual_s = least_virtual_s(plan)
    return Expected(virtual_s, times * (START_S + (least_packets(plan) * PACKET_S if in_virtual_time else virtual_s)))


def least_virtual_s(plan: Plan) -> float:
    """Virtual seconds until the last required workload can be over when nothing is lost and nothing waits."""
    required = (workload for workload in plan.cell.workloads if workload.required)
    return max((_end_ns(plan, workload) for workload in required), default=0) / SECOND_NS


def least_packets(plan: Plan) -> int:
    """Packets of data that the workloads send when nothing is lost; those of congestion generators do not count."""
    return sum(int(_packets(plan, one) * _share(plan, one)) for one in plan.cell.workloads)


def least_lines(plan: Plan) -> int:
    """Lines of the record of packets when nothing is lost: those packets at every link, and an acknowledgement for two
    of them (RFC 5681 section 4.2).
    """
    each = ((_packets(plan, one) * _share(plan, one), len(ways(plan, one)[0])) for one in plan.cell.workloads)
    return sum(int(packets * links * 1.5) for packets, links in each)


def _share(plan: Plan, workload: Traffic) -> float:
    """How much of a workload there is before the last required one ends, which ends the others."""
    busy_ns = least_sent_ns(workload, ways(plan, workload)[0]) - workload.start_ns
    left_ns = max(0.0, least_virtual_s(plan) * SECOND_NS - workload.start_ns)
    return 1 if workload.required or left_ns >= busy_ns else left_ns / busy_ns


def _packets(plan: Plan, workload: Traffic) -> int:
    found, _ = ways(plan, workload)
    hop = slowest(found)
    mtu_bytes = min((one.mtu_bytes for one in found), default=0)
    return workload.least_packets(hop.direction.rate_bps if hop else None, mtu_bytes) if mtu_bytes else 0


def _end_ns(plan: Plan, workload: Traffic) -> int:
    there, _ = ways(plan, workload)
    # A round trip to connect and one for the last acknowledgement.
    return least_sent_ns(workload, there) + 4 * sum(hop.delay_ns for hop in there)


def least_sent_ns(workload: Traffic, there: Way) -> int:
    """When a workload can have sent everything when nothing is lost and nothing waits, from the epoch on."""
    hop = slowest(there)
    return workload.start_ns + workload.busy_ns(hop.direction.rate_bps if hop else None)


@dataclass(frozen=True)
class Cost:
    """What a run or campaign needs: its cells, seconds of a core for all of them and for the longest, virtual seconds.

    `virtual_s` are the least; `guest_mib`: the memory of a guest, in MiB.
    """

    cells: int
    busy_s: float
    longest_s: float
    virtual_s: float
    guest_mib: int

    @classmethod
    def of(cls, plans: Iterable[Plan]) -> Self:
        """The cost of plans, at least one, one after the other. Where nothing is drawn, the first repeat serves all."""
        run = (plan for plan in plans if plan.cell.repeat == 1 or chances(plan))
        each = ((expected(plan).wall_s, least_virtual_s(plan), plan.network.memory_mib) for plan in run)
        return reduce(add, (cls(1, took_s, took_s, virtual_s, guest_mib) for took_s, virtual_s, guest_mib in each))

    def __add__(self, other: Self) -> Self:
        """Both, one after the other."""
        return type(self)(
            self.cells + other.cells,
            self.busy_s + other.busy_s,
            max(self.longest_s, other.longest_s),
            self.virtual_s + other.virtual_s,
            max(self.guest_mib, other.guest_mib),
        )

    def wall_s(self, cores: int) -> float:
        """Seconds on so many cores: no cell is faster than itself."""
        return max(self.busy_s / cores, self.longest_s)

    def memory_mib(self, cores: int) -> int:
        """Memory for cells on so many cores of one machine, at most; guests use what they touch."""
        return PROGRAM_MIB + cores * GUESTS_PER_CORE * self.guest_mib


MINUTE_S, HOUR_S = 60, 3600
# A shorter run needs no forecast.
LONG_S = 60


def wall_s(cells: Iterable[Expected], jobs: int) -> float:
    """Seconds for cells, so many at a time: none is faster than itself."""
    each = [cell.wall_s for cell in cells]
    return max(sum(each) / (min(jobs, len(each)) or 1), *each, 0.0)


def forecast(cells: Iterable[Expected], jobs: int, *, in_virtual_time: bool = True) -> str:
    """How long cells take, and how fast their virtual time passes, in words."""
    known = list(cells)
    virtual_s, at_once, takes_s = sum(cell.virtual_s for cell in known), min(jobs, len(known)), wall_s(known, jobs)
    pace = virtual_s / takes_s if takes_s else 0.0
    number = "1 cell" if len(known) == 1 else f"{len(known)} cells"
    side_by_side = f", {at_once} at a time" if at_once > 1 else ""
    text = f"about {in_words(takes_s)} for {number}{side_by_side}"
    return (
        f"{text}: {in_words(virtual_s)} of virtual time at least, some {pace:.2g} virtual s per s"
        if in_virtual_time
        else text
    )


def in_words(seconds: float) -> str:
    """A time as a person says it: 40 s, 12 min, 3.5 h."""
    if seconds < 2 * MINUTE_S:
        return f"{seconds:.0f} s"
    return f"{seconds / MINUTE_S:.0f} min" if seconds < 2 * HOUR_S else f"{seconds / HOUR_S:.1f} h"
