"""CoDel (RFC 8289): packets are dropped when for too long none of them has waited less than a target."""

from collections.abc import Iterator

from scpslab.core import units
from scpslab.core.problems import Problem
from scpslab.documents.parts import key
from scpslab.documents.quantities import PositiveDuration
from scpslab.plan.disciplines import Queue
from scpslab.scenario.disciplines import Discipline

from scpslab.kinds.disciplines.codel.plan import Codel as Planned

MS_NS = 10**6


class Codel(Discipline, kind="codel"):
    """Drops, or marks, by the time in the queue.

    Attributes:
        codel_target: codel: acceptable time in the queue. Default: 5 ms. Must cover the time of a packet.
        codel_interval: codel: longest time for which the target may be missed. Default: 100 ms. Should cover a round
            trip.
    """

    codel_target: PositiveDuration | None = key(None, example="5 ms")
    codel_interval: PositiveDuration | None = key(None, example="600 ms")

    def settings(self, queue: Queue) -> Planned:
        """RFC 8289 §4.4: 5 ms and 100 ms, for round trips of the Internet; a geostationary hop needs the scenario's
        own.
        """
        return Planned(target_ns=self.codel_target or 5 * MS_NS, interval_ns=self.codel_interval or 100 * MS_NS)

    @staticmethod
    def doubts(settings: Planned, packet_ns: int) -> Iterator[Problem]:
        """Targets below the time of a packet, or not below the interval."""
        target, interval = (units.text("duration", value) for value in (settings.target_ns, settings.interval_ns))
        if settings.target_ns < packet_ns:
            found = f"a target of {target}, where a full packet takes {packet_ns / 1e6:.3g} ms"
            found += ", so that waiting for one packet is too long"
            yield Problem(("codel_target",), found, "at least that", "Raise the target.")
        if settings.target_ns >= settings.interval_ns:
            found = f"a target of {target}, not below the interval, {interval}"
            yield Problem(("codel_target",), found, "a tenth of it or less", "Lower it, or raise the interval.")
