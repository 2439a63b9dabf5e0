"""RED (Floyd and Jacobson 1993): packets are dropped at random, the more the longer the average queue."""

from __future__ import annotations

from typing import ClassVar

from scpslab.documents.parts import Part, key
from scpslab.documents.quantities import Probability, Size
from scpslab.plan.disciplines import Queue
from scpslab.scenario.disciplines.kind import Discipline

from scpslab.kinds.disciplines.red.plan import Red as Planned


class Keys(Part):
    """What a scenario says of RED."""

    red_min: Size | None = key(
        None, says="red: average queue at which dropping begins. Default: a quarter of the limit.", example="33 kB"
    )
    red_max: Size | None = key(
        None, says="red: average queue at which every packet is dropped. Default: half of the limit.", example="66 kB"
    )
    red_probability: Probability | None = key(
        None, says="red: probability of dropping just below red_max. Default: 0.1.", example=0.1
    )


class Red(Discipline):
    """Drops, or marks, between two thresholds."""

    keys = Keys
    planned = Planned
    planned_as: ClassVar = {"probability": "red_probability"}

    def settings(self, given: Keys, queue: Queue) -> Planned:
        """Floyd's advice for RED: from a quarter to a half of the buffer, one packet in ten at the upper end."""
        least, most = thresholds(given, queue.room_bytes)
        return Planned(
            min_bytes=least, max_bytes=most, probability=0.1 if given.red_probability is None else given.red_probability
        )


def thresholds(given: Keys, room_bytes: int) -> tuple[int, int]:
    """The two thresholds of a queue with room for so many bytes."""
    return (
        room_bytes // 4 if given.red_min is None else given.red_min,
        room_bytes // 2 if given.red_max is None else given.red_max,
    )


KIND = Red()
