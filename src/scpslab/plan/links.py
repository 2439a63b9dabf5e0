"""Links of packets: two ends, and in each direction the stages serialise and queue, and propagate.

What errs is the cell's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from scpslab.plan.disciplines import Queue
from scpslab.plan.routes import RouteOptions
from scpslab.plan.schema import Range, null
from scpslab.plan.values import Interface, IpWithPrefix, Mac, Name, Nanoseconds, Rate, Size

Mtu = Annotated[int, Range(68, 65_535)]

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


@dataclass(frozen=True, kw_only=True)
class End:
    """Where a link meets a node.

    `route`: options of the route to the link's subnet, if the node's TCP has any and it may talk to another host there.
    """

    node: Name
    interface: Interface
    mac: Mac
    ip: IpWithPrefix | None
    route: RouteOptions | None = None


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link; `via` names the switch where its delay lives."""

    name: Name
    via: Name | None
    mtu_bytes: Mtu
    ends: tuple[End, End]
    relay_interfaces: tuple[Interface, Interface] | None
    directions: tuple[Direction, Direction]
