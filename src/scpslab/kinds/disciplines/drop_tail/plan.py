"""Drop-tail has no settings, and the only serialiser that is exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from scpslab.plan.disciplines import DISCIPLINES, QueueSettings


@dataclass(frozen=True, kw_only=True)
class DropTail(QueueSettings):
    """Nothing but a limit."""

    SERIALISES: ClassVar[bool] = True


DISCIPLINES.register("drop-tail", DropTail)
