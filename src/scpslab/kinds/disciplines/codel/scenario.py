"""CoDel (RFC 8289): packets are dropped when for too long none of them has waited less than a target."""

from __future__ import annotations

from typing import Any

from scpslab.documents.parts import Part, key
from scpslab.documents.quantities import PositiveDuration
from scpslab.plan.disciplines import Queue
from scpslab.scenario.disciplines.kind import Discipline

MS_NS = 10**6


class Keys(Part):
    """What a scenario says of CoDel."""

    codel_target: PositiveDuration | None = key(
        None, says="codel: acceptable time in the queue. Default: 5 ms. Must cover the time of a packet.", example="5 ms"
    )
    codel_interval: PositiveDuration | None = key(
        None, says="codel: longest time for which the target may be missed. Default: 100 ms. Should cover a round trip.", example="600 ms"
    )


class Codel(Discipline):
    """Drops, or marks, by the time in the queue."""

    keys = Keys
    marks = True

    def settings(self, given: Keys, queue: Queue) -> dict[str, Any]:
        """RFC 8289 §4.4: 5 ms and 100 ms, for round trips of the Internet; a geostationary hop needs the scenario's own."""
        return {
            "codel_target_ns": given.codel_target or 5 * MS_NS,
            "codel_interval_ns": given.codel_interval or 100 * MS_NS,
        }


KIND = Codel()
