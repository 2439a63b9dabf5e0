"""PIE (RFC 8033): packets are dropped at random, so that the time in the queue comes near a target."""

from __future__ import annotations

from scpslab.documents.parts import key
from scpslab.documents.quantities import PositiveDuration
from scpslab.plan.disciplines import Queue
from scpslab.scenario.disciplines import Discipline

from scpslab.kinds.disciplines.pie.plan import Pie


class PieDiscipline(Discipline, kind="pie"):
    """Drops, or marks, by the time in the queue."""

    pie_target: PositiveDuration | None = key(
        None, says="pie: time in the queue that it aims at; 15 ms if not given.", example="15 ms"
    )

    def settings(self, queue: Queue) -> Pie:
        """RFC 8033 §5.1: 15 ms."""
        return Pie(target_ns=self.pie_target or 15 * 10**6)
