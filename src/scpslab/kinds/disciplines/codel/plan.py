"""CoDel's settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from scpslab.plan.disciplines import DISCIPLINES, QueueSettings
from scpslab.plan.values import Period


@dataclass(frozen=True, kw_only=True)
class Codel(QueueSettings):
    """The acceptable time in the queue, and for how long it may be missed."""

    MARKS: ClassVar[bool] = True

    target_ns: Period
    interval_ns: Period


DISCIPLINES.register("codel", Codel)
