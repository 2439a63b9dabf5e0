"""RED (Floyd and Jacobson 1993): packets are dropped at random, the more the longer the average queue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scpslab import units
from scpslab.disciplines.kind import Discipline, Problem
from scpslab.documents.parts import Part, key
from scpslab.documents.quantities import Probability, Size
from scpslab.plan.disciplines import Queue


class Keys(Part):
    """What a scenario says of RED."""

    red_min: Size | None = key(None, says="red: average queue at which dropping begins. Default: a quarter of the limit.", example="33 kB")
    red_max: Size | None = key(None, says="red: average queue at which every packet is dropped. Default: half of the limit.", example="66 kB")
    red_probability: Probability | None = key(None, says="red: probability of dropping just below red_max. Default: 0.1.", example=0.1)


class Red(Discipline):
    """Drops, or marks, between two thresholds."""

    keys = Keys
    marks = True

    def problems(self, given: Keys, limit_bytes: int | None) -> Iterator[Problem]:
        """Thresholds that do not ascend to the limit."""
        if limit_bytes is None and (given.red_min is None or given.red_max is None):
            return
        least, most = thresholds(given, limit_bytes or 0)
        if not least < most <= (limit_bytes or most):
            yield (), f"found red_min {least} B, red_max {most} B and a limit of {limit_bytes} B; expected them to ascend. Correct them."

    def settings(self, given: Keys, queue: Queue) -> dict[str, Any]:
        """Floyd's advice for RED: from a quarter to a half of the buffer, one packet in ten at the upper end."""
        least, most = thresholds(given, queue.room_bytes)
        return {
            "red_min_bytes": least,
            "red_max_bytes": most,
            "red_probability": 0.1 if given.red_probability is None else given.red_probability,
        }


def thresholds(given: Keys, room_bytes: int) -> tuple[int, int]:
    """The two thresholds of a queue with room for so many bytes."""
    least, most = (units.parse("size", value) if value is not None else None for value in (given.red_min, given.red_max))
    return room_bytes // 4 if least is None else least, room_bytes // 2 if most is None else most


KIND = Red()
