"""Workloads as plans know them: a folder a kind in scpslab.kinds, and one line in the list of names."""

from __future__ import annotations

from typing import Annotated

from scpslab.core.kinds import NAMES as KINDS
from scpslab.core.kinds import Layer
from scpslab.plan.schema import Kinds
from scpslab.plan.workloads.base import Traffic

NAMES = KINDS["workloads"]
WORKLOADS: Layer[type[Traffic]] = Layer("workloads", "plan")
Workload = Annotated[Traffic, Kinds("kind", WORKLOADS)]

__all__ = ["NAMES", "WORKLOADS", "Traffic", "Workload"]
