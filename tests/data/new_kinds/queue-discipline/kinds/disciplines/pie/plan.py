"""PIE's setting."""

from __future__ import annotations

from dataclasses import dataclass

from scpslab.plan.disciplines.base import Discipline
from scpslab.plan.values import Period


@dataclass(frozen=True, kw_only=True)
class Pie:
    """The time in the queue that it aims at."""

    pie_target_ns: Period | None = None


KIND = Discipline(settings=Pie)
