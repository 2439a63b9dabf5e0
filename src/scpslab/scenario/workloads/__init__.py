"""What generates traffic, as scenarios and planning know it: a folder a kind in scpslab.kinds.

A kind has the model of what a scenario says of it, and everything that follows from that; `base.py` says what that is.
The other modules here are what several kinds share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, Union

from pydantic import Field

from scpslab.core.kinds import Layer
from scpslab.scenario.workloads.base import Kind, Setting, Surroundings, Traffic

KINDS: Layer[Kind[Any, Any]] = Layer("workloads", "scenario")

if TYPE_CHECKING:
    Workload: TypeAlias = Traffic
else:
    Workload = Annotated[Union[tuple(kind.model for kind in KINDS.values())], Field(discriminator="kind")]  # noqa: UP007 (made while the program runs)

__all__ = ["KINDS", "Kind", "Setting", "Surroundings", "Traffic", "Workload"]
