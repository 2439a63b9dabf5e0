"""CoDel's settings."""

from typing import ClassVar

from scpslab.plan.disciplines import QueueSettings
from scpslab.plan.values import Period


class Codel(QueueSettings, kind="codel"):
    """The acceptable time in the queue, and for how long it may be missed."""

    MARKS: ClassVar[bool] = True

    target_ns: Period
    interval_ns: Period
