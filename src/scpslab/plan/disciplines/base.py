"""What a queue discipline is set to: the base of every discipline's settings in a plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from scpslab.plan.places import Problem


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
