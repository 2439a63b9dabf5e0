"""Drop-tail has no settings, and the only serialiser that is exact."""

from typing import ClassVar

from scpslab.plan.disciplines import QueueSettings


class DropTail(QueueSettings, kind="drop-tail"):
    """Nothing but a limit."""

    SERIALISES: ClassVar[bool] = True
