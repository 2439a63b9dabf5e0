"""Probes as plans know them: a folder a kind in scpslab.kinds, and one line in the list of names."""

from __future__ import annotations

from typing import Annotated

from scpslab.core.kinds import NAMES as KINDS
from scpslab.core.kinds import Layer
from scpslab.plan.probes.base import Observer
from scpslab.plan.schema import Kinds

NAMES = KINDS["probes"]
PROBES: Layer[type[Observer]] = Layer("probes", "plan")
Probe = Annotated[Observer, Kinds("kind", PROBES)]

__all__ = ["NAMES", "PROBES", "Observer", "Probe"]
