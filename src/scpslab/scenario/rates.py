"""How fast a path is, with what a scenario changes of its links."""

from __future__ import annotations

from scpslab.plan.ways import Hop, Way
from scpslab.scenario.model import ScenarioFile


def rate_bps(model: ScenarioFile, hop: Hop) -> int | None:
    """The rate of a hop: the scenario's, else the topology's; None when it is not limited."""
    given = model.links.get(hop.link.name, {}).get(hop.direction.name)
    return given.rate if given and given.rate is not None else hop.direction.rate_bps


def slowest_bps(model: ScenarioFile, found: Way) -> int | None:
    """The rate of the slowest hop of a path; None when none is limited."""
    return min((rate for hop in found if (rate := rate_bps(model, hop)) is not None), default=None)


def mtu_bytes(found: Way) -> int | None:
    """The largest IP packet that fits through a path; None when it is empty."""
    return min((hop.mtu_bytes for hop in found), default=None)
