"""RED (Floyd and Jacobson 1993): packets are dropped at random, the more the longer the average queue."""

from typing import ClassVar

from scpslab.documents.parts import key
from scpslab.documents.quantities import Probability, Size
from scpslab.plan.disciplines import Queue
from scpslab.scenario.disciplines import Discipline

from scpslab.kinds.disciplines.red.plan import Red as Planned


class Red(Discipline, kind="red"):
    """Drops, or marks, between two thresholds.

    Attributes:
        red_min: red: average queue at which dropping begins. Default: a quarter of the limit.
        red_max: red: average queue at which every packet is dropped. Default: half of the limit.
        red_probability: red: probability of dropping just below red_max. Default: 0.1.
    """

    planned_as: ClassVar = {"probability": "red_probability"}

    red_min: Size | None = key(None, example="33 kB")
    red_max: Size | None = key(None, example="66 kB")
    red_probability: Probability | None = key(None, example=0.1)

    def settings(self, queue: Queue) -> Planned:
        """Floyd's advice for RED: from a quarter to a half of the buffer, one packet in ten at the upper end."""
        return Planned(
            min_bytes=queue.room_bytes // 4 if self.red_min is None else self.red_min,
            max_bytes=queue.room_bytes // 2 if self.red_max is None else self.red_max,
            probability=0.1 if self.red_probability is None else self.red_probability,
        )
