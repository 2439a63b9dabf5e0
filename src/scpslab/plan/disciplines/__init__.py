"""The queue before a serialiser, and its disciplines: a folder each in scpslab.kinds."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any

from scpslab.core.kinds import Layer
from scpslab.plan.disciplines.base import Discipline
from scpslab.plan.schema import Text, shown
from scpslab.plan.values import Amount

# What limits in packets count where bytes are asked for.
FULL_PACKET_BYTES = 1500
DEFAULT = "drop-tail"
DISCIPLINES: Layer[Discipline] = Layer("disciplines", "plan")
DisciplineName = Annotated[str, Text(f"one of {', '.join(map(shown, DISCIPLINES))}", DISCIPLINES.__contains__)]


@dataclass(frozen=True, kw_only=True)
class Limited:
    """A discipline and its limit; one of the limits is None."""

    discipline: DisciplineName
    limit_bytes: Amount | None
    limit_packets: Amount | None


@dataclass(frozen=True, kw_only=True)
class Queue(*(kind.settings for kind in reversed(list(DISCIPLINES.values())) if kind.settings), Limited):  # type: ignore[misc]  # those of the registry
    """The queue before the serialiser; one of the limits is None."""

    ecn: bool

    @property
    def serialises(self) -> bool:
        """Whether stage 1 gives every packet its time on the line; see Discipline."""
        return DISCIPLINES[self.discipline].serialises

    @property
    def room_bytes(self) -> int:
        """The limit in bytes; packets count as full ones."""
        return self.limit_bytes if self.limit_bytes is not None else (self.limit_packets or 0) * FULL_PACKET_BYTES


def settings_of(discipline: str) -> tuple[str, ...]:
    """The keys of a queue that are settings of a discipline."""
    settings = DISCIPLINES[discipline].settings
    return tuple(field.name for field in fields(settings)) if settings is not None else ()


def without_settings(discipline: str = DEFAULT, limit_bytes: int | None = None, limit_packets: int | None = None, *, ecn: bool = False) -> Queue:
    """A queue of which no discipline's settings are known."""
    unknown: dict[str, Any] = {name: None for known in DISCIPLINES for name in settings_of(known)}
    return Queue(discipline=discipline, limit_bytes=limit_bytes, limit_packets=limit_packets, ecn=ecn, **unknown)
