"""What observes, as scenarios and planning know it: a folder a kind in scpslab.kinds.

A kind has the model of what a scenario says of it, and everything that follows from that; `base.py` says what that is.
The other modules here are what several kinds share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, Union

from pydantic import Field

from scpslab.core.kinds import Layer
from scpslab.plan.probes import PROBES
from scpslab.scenario.probes.base import Kind, Observer

KINDS: Layer[Kind[Any, Any]] = Layer("probes", "scenario")

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
