"""Ways through a plan's network, and how fast they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from scpslab.plan.links import Direction, Link
from scpslab.plan.serial_links import SerialDirection, SerialLink

T = TypeVar("T")


@dataclass(frozen=True)
class Hop:
    """A link in the direction in which a packet takes it."""

    link: Link | SerialLink
    direction: Direction | SerialDirection

    @property
    def place(self) -> tuple[str, str]:
        """The names of link and direction."""
        return self.link.name, self.direction.name

    @property
    def delay_ns(self) -> int:
        """The delay with which a cell begins."""
        return self.direction.first_delay_ns if isinstance(self.direction, Direction) else self.direction.delay_ns

    @property
    def mtu_bytes(self) -> int:
        """The largest IP packet that fits through."""
        return self.link.mtu_bytes


Way = list[Hop]


def way(links: Iterable[Link | SerialLink], source: str, destination: str) -> Way:
    """The hops from one node to another over the fewest links, which is how SCPS-NP is routed; empty when there is no
    way.
    """
    hops = [Hop(link, direction) for link in links for direction in link.directions]
    return fewest([(hop.direction.from_, hop.direction.to, hop) for hop in hops], source, destination)


def fewest(steps: Iterable[tuple[str, str, T]], source: str, destination: str) -> list[T]:
    """The steps (from, to, what it is) that lead from one place to another, as few as can be; none when there is no
    way.
    """
    known = list(steps)
    reached: dict[str, list[T]] = {source: []}
    frontier = [source]
    while frontier and destination not in reached:
        here = frontier.pop(0)
        for start, end, step in known:
            if start == here and end not in reached:
                reached[end] = [*reached[here], step]
                frontier.append(end)
    return reached.get(destination, [])


def slowest(found: Way) -> Hop | None:
    """The hop of a way with the lowest rate, the first of several; None when none is limited."""
    return min(
        (hop for hop in found if hop.direction.rate_bps is not None),
        key=lambda hop: hop.direction.rate_bps or 0,
        default=None,
    )
