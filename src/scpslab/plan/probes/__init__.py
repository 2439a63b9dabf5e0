"""Probes: one file a kind, one line in NAMES, which is the list of all kinds for whoever describes, plans or runs them."""

from __future__ import annotations

from typing import Annotated

from scpslab.kinds import kinds_of
from scpslab.plan.probes.base import Observer
from scpslab.plan.schema import Kinds

NAMES = (
    "capture",
    "tcp_info",
    "queue",
    "verdicts",
)
PROBES: dict[str, type[Observer]] = kinds_of(__name__, NAMES)
Probe = Annotated[Observer, Kinds("kind", PROBES)]

__all__ = ["NAMES", "PROBES", "Observer", "Probe"]
