"""Links of packets: two ends, and in each direction the stages serialise and queue, and propagate.

What errs is the cell's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Annotated

from scpslab.core import units
from scpslab.core.problems import KeyPath, Problem
from scpslab.plan.disciplines import OneProduct, Queue
from scpslab.plan.routes import RouteOptions
from scpslab.plan.schema import Part, Range, null
from scpslab.plan.values import Interface, IpWithPrefix, Mac, Name, Nanoseconds, Rate, Size

Mtu = Annotated[int, Range(68, 65_535)]
LONGEST_DELAY_NS = 2**31 * 1000  # netem keeps it in 64 bits; half an hour is beyond Mars
FOR_EVER_NS = 1 << 62  # when nothing ends that does not end
MOST_JITTER_NS = 2**31 - 1  # netem cuts what is beyond
LARGEST_OVERHEAD_BYTES = 65_535  # RFC 791 §3.1, Total Length

# What can become of a packet that does not arrive as it was sent. The lab counts by these words, and results.csv names
# its columns by them.
QUEUE, CORRUPT, OUTAGE, POLICY = "queue", "corrupt", "outage", "policy"
# Each packet that does not arrive has one of these causes; and what each means.
LOSS_CAUSES = {
    QUEUE: "the queue before the serialiser was full (or its discipline dropped)",
    CORRUPT: "a bit error hit the packet",
    OUTAGE: "the link was out",
    POLICY: "the drop list named it, or packet loss was drawn for it",
}
# Of directions with a policer, which alone have it.
POLICED = "policed"
ALL_CAUSES = {**LOSS_CAUSES, POLICED: "the policer had no credit left for it"}
# It arrives, but with bits changed.
FLIPPED = "flipped"


@dataclass(frozen=True)
class Direction:
    """One direction of a link.

    `jitter_ns`: each packet's delay is drawn, up to so much less or more (the seed is the cell's).
    """

    name: Name
    # A topology leaves the nodes out: its link has them.
    from_: Name = field(default="", kw_only=True)
    to: Name = field(default="", kw_only=True)
    rate_bps: Rate | None = field(default_factory=null)
    overhead_bytes: Size = 0
    queue: Queue | None = field(default_factory=null)
    delay_ns: Nanoseconds = 0
    delay_table: tuple[tuple[Nanoseconds, Nanoseconds], ...] | None = field(default_factory=null, kw_only=True)
    jitter_ns: Nanoseconds = field(default=0, kw_only=True)

    @property
    def first_delay_ns(self) -> int:
        """The delay with which a cell begins."""
        return self.delay_table[0][1] if self.delay_table else self.delay_ns

    def problems(self) -> Iterator[Problem]:
        """Keys whose values do not fit each other."""
        yield from self._serialiser()
        if self.overhead_bytes > LARGEST_OVERHEAD_BYTES:
            expected = f"at most {LARGEST_OVERHEAD_BYTES} B, the length of the largest packet"
            found = f'"{units.text("size", self.overhead_bytes)}"'
            yield Problem(("overhead_bytes",), found, expected, "Correct the value.")
        yield from delay_problems(("delay_ns",), self.delay_ns)
        table = self.delay_table
        if table is not None:
            times = [t_ns for t_ns, _ in table]
            if times[:1] != [0] or any(later <= earlier for earlier, later in pairwise(times)):
                yield Problem(("delay_table",), "steps out of order", "times that ascend from 0", "Sort them.")
            yield from delay_problems(("delay_table",), max((delay_ns for _, delay_ns in table), default=0))
        least_ns = min(MOST_JITTER_NS, *(delay_ns for _, delay_ns in table or ((0, self.delay_ns),)))
        if self.jitter_ns > least_ns:
            jitter, least = (units.text("duration", time_ns) for time_ns in (self.jitter_ns, least_ns))
            expected = f"at most {least}, the delay or netem's limit"
            yield Problem(("jitter_ns",), f"jitter of {jitter}", expected, "Correct the value.")

    def _serialiser(self) -> Iterator[Problem]:
        """What does not fit of the rate and its queue."""
        queue = self.queue
        if queue is not None and self.rate_bps is None:
            yield Problem(("queue",), "a queue on a direction without a rate", "a rate too", "Add the rate.")
        if self.rate_bps is not None and queue is None:
            advice = "Add queue: {limit: …}."
            yield Problem(("rate_bps",), "a rate on a direction without a queue", "a queue too", advice)
        yield from rate_problems(("rate_bps",), self.rate_bps or 0)
        if queue is None:
            return
        if self.jitter_ns and not queue.serialises:
            found = "jitter behind a managed queue, whose packets stage 2 keeps in order"
            yield Problem(("jitter_ns",), found, "a drop-tail queue", "Remove one of them.")
        yield from (problem.within("queue") for problem in queue.problems())

    def needs_relay(self) -> Iterator[Problem]:
        """What a link without a relay cannot do."""
        for key, word, is_there in (
            ("delay_ns", "a delay", self.delay_ns > 0),
            ("delay_table", "delays in steps", self.delay_table is not None),
            ("jitter_ns", "jitter", self.jitter_ns > 0),
        ):
            if is_there:
                found = f"{word} on a link without a relay"
                yield Problem((key,), found, "a link that goes through a switch (via)", "Choose such a link.")


class End(Part):
    """Where a link meets a node.

    `route`: options of the route to the link's subnet, if the node's TCP has any and it may talk to another host there.
    """

    node: Name
    interface: Interface
    mac: Mac
    ip: IpWithPrefix | None
    route: RouteOptions | None = None


class Link(Part):
    """A link; `via` names the switch where its delay lives."""

    name: Name
    via: Name | None
    mtu_bytes: Mtu
    ends: tuple[End, End]
    relay_interfaces: tuple[Interface, Interface] | None
    directions: tuple[Direction, Direction]

    @property
    def rtt_ns(self) -> int:
        """The delays of both directions, with which a cell begins."""
        return sum(direction.first_delay_ns for direction in self.directions)

    def problems(self) -> Iterator[Problem]:
        """What does not fit of its directions."""
        for number, direction in enumerate(self.directions):
            lacking = list(direction.needs_relay()) if self.via is None else []
            told = {problem.at for problem in lacking}
            own = (problem for problem in direction.problems() if problem.at not in told)
            yield from (problem.within("directions", number) for problem in (*own, *lacking))

    def sized(self) -> Link:
        """The link with the limits of queues of one bandwidth-delay product."""
        first, second = (
            replace(one, queue=one.queue.at(one.rate_bps or 0, self.rtt_ns))
            if isinstance(one.queue, OneProduct)
            else one
            for one in self.directions
        )
        return replace(self, directions=(first, second))


def rate_problems(at: KeyPath, rate_bps: int) -> Iterator[Problem]:
    """A rate that no serialiser has: it counts whole bytes."""
    if rate_bps % 8:
        yield Problem(at, f'"{rate_bps} bit/s"', "a multiple of 8 bit/s", "Change it by a few bit/s.")


def delay_problems(at: KeyPath, delay_ns: int) -> Iterator[Problem]:
    """A delay that no queue of the kernel holds."""
    if delay_ns > LONGEST_DELAY_NS:
        delay, longest = (units.text("duration", time_ns) for time_ns in (delay_ns, LONGEST_DELAY_NS))
        yield Problem(at, f"a delay of {delay}", f"at most {longest}", "Correct the value.")
