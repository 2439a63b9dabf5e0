"""Ways through a described network, and how fast they are with what a scenario changes of it."""

from __future__ import annotations

from scpslab import units
from scpslab.plan.ways import fewest
from scpslab.scenario.model import ScenarioFile
from scpslab.topology.description import Direction, Link, Network

Way = list[tuple[Link, Direction]]


def way(network: Network, source: str, destination: str) -> Way:
    """The link directions from one node to another over the fewest links; empty when there is none."""
    ends = (
        (link, start, end, direction) for link in network.links for start, end, direction in ((link.a, link.b, link.forward), (link.b, link.a, link.reverse))
    )
    return fewest(((start, end, (link, direction)) for link, start, end, direction in ends), source, destination)


def rate_bps(model: ScenarioFile, link: Link, direction: Direction) -> int | None:
    """The rate of a direction: the scenario's, else the topology's; None when it is not limited."""
    given = model.links.get(link.name, {}).get(direction.name)
    return units.parse("rate", given.rate) if given and given.rate is not None else direction.rate_bps


def slowest_bps(model: ScenarioFile, found: Way) -> int | None:
    """The rate of the slowest hop of a way; None when none is limited."""
    return min((rate for link, direction in found if (rate := rate_bps(model, link, direction)) is not None), default=None)


def mtu_bytes(found: Way) -> int | None:
    """The largest IP packet that fits through a way; None when it is empty."""
    return min((link.mtu_bytes for link, _ in found), default=None)
