"""What generates traffic, as scenarios and planning know it: one file a kind; the list of kinds is the plan's (plan/workloads).

A kind's file has the model of what a scenario says of it, and everything that follows from that; `base.py` says what that is. What a plan says of a
kind is in plan/workloads/<kind>.py, what it does in lab/workloads/<kind>.py. The other modules here are what several kinds share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, Union

from pydantic import Field

from scpslab.kinds import kinds_of
from scpslab.plan.workloads import NAMES
from scpslab.workloads.base import Kind, Setting, Surroundings, Traffic

KINDS: dict[str, Kind[Any, Any]] = kinds_of(__name__, NAMES)

if TYPE_CHECKING:
    Workload: TypeAlias = Traffic
else:
    Workload = Annotated[Union[tuple(kind.model for kind in KINDS.values())], Field(discriminator="kind")]  # noqa: UP007 (made while the program runs)

__all__ = ["KINDS", "Kind", "Setting", "Surroundings", "Traffic", "Workload"]
