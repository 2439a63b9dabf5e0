"""The queue before a serialiser, and its disciplines: a folder each in scpslab.kinds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from scpslab.core.kinds import Layer
from scpslab.plan.places import Problem
from scpslab.plan.schema import DependsOn, Text, shown
from scpslab.plan.values import Amount

# What limits in packets count where bytes are asked for.
FULL_PACKET_BYTES = 1500
DEFAULT = "drop-tail"


@dataclass(frozen=True, kw_only=True)
class QueueSettings:
    """The settings of a discipline that has none.

    `SERIALISES`: stage 1 gives every packet its time on the line, keeps the limit exactly (eBPF), counts its own drops,
    and can change its rate; otherwise the kernel's queue releases packets when their turn comes, stage 2 adds their
    time and keeps their order. `MARKS`: it can mark packets instead of dropping them (ECN).
    """

    SERIALISES: ClassVar[bool] = False
    MARKS: ClassVar[bool] = False

    def problems(self, room_bytes: int) -> Iterator[Problem]:
        """What does not fit in a queue with room for so many bytes, with the key and what to do."""
        yield from ()


DISCIPLINES: Layer[type[QueueSettings]] = Layer("disciplines", "plan")
DisciplineName = Annotated[str, Text(f"one of {', '.join(map(shown, DISCIPLINES))}", DISCIPLINES.__contains__)]


@dataclass(frozen=True, kw_only=True)
class Queue:
    """The queue before the serialiser; one of the limits is None."""

    discipline: DisciplineName
    limit_bytes: Amount | None
    limit_packets: Amount | None
    ecn: bool
    settings: Annotated[QueueSettings, DependsOn("discipline", DISCIPLINES)]

    @property
    def serialises(self) -> bool:
        """Whether stage 1 gives every packet its time on the line; see QueueSettings."""
        return self.settings.SERIALISES

    @property
    def room_bytes(self) -> int:
        """The limit in bytes; packets count as full ones."""
        return self.limit_bytes if self.limit_bytes is not None else (self.limit_packets or 0) * FULL_PACKET_BYTES


def without_settings(
    discipline: str = DEFAULT, limit_bytes: int | None = None, limit_packets: int | None = None, *, ecn: bool = False
) -> Queue:
    """A queue of a discipline that has no settings; raises TypeError for one that needs some."""
    return Queue(
        discipline=discipline,
        limit_bytes=limit_bytes,
        limit_packets=limit_packets,
        ecn=ecn,
        settings=DISCIPLINES[discipline](),
    )
