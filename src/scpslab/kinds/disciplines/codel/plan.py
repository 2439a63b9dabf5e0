"""CoDel's settings."""

from __future__ import annotations

from dataclasses import dataclass

from scpslab.plan.disciplines.base import Discipline
from scpslab.plan.values import Period


@dataclass(frozen=True, kw_only=True)
class Codel:
    """The acceptable time in the queue, and for how long it may be missed."""

    codel_target_ns: Period | None
    codel_interval_ns: Period | None


KIND = Discipline(settings=Codel)
