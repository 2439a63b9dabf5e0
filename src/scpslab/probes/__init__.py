"""What observes, as scenarios and planning know it: one file a kind; the list of kinds is the plan's (plan/probes).

A kind's file has the model of what a scenario says of it, and everything that follows from that; `base.py` says what that is. What a plan says of a
kind is in plan/probes/<kind>.py, what it does in lab/probes/<kind>.py. The other modules here are what several kinds share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, Union

from pydantic import Field

from scpslab.kinds import kinds_of
from scpslab.plan.probes import NAMES, PROBES
from scpslab.probes.base import Kind, Observer

KINDS: dict[str, Kind[Any, Any]] = kinds_of(__name__, NAMES)

if TYPE_CHECKING:
    Probe: TypeAlias = Observer
else:
    Probe = Annotated[Union[tuple(kind.model for kind in KINDS.values())], Field(discriminator="kind")]  # noqa: UP007 (made while the program runs)


def name_of(probe: Probe) -> str:
    """The name that a probe's file has."""
    return probe.name or KINDS[probe.kind].default_name(probe)


def folder_of(probe: Probe) -> str:
    """The folder that its file is in."""
    return PROBES[probe.kind].folder


__all__ = ["KINDS", "Kind", "Observer", "Probe", "folder_of", "name_of"]
