"""PIE's setting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from scpslab.plan.disciplines import DISCIPLINES, QueueSettings
from scpslab.plan.values import Period


@dataclass(frozen=True, kw_only=True)
class Pie(QueueSettings):
    """The time in the queue that it aims at."""

    MARKS: ClassVar[bool] = True

    target_ns: Period


DISCIPLINES.register("pie", Pie)
