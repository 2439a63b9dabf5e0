"""PIE's setting."""

from __future__ import annotations

from typing import ClassVar

from scpslab.plan.disciplines import QueueSettings
from scpslab.plan.values import Period


class Pie(QueueSettings, kind="pie"):
    """The time in the queue that it aims at."""

    MARKS: ClassVar[bool] = True

    target_ns: Period
