"""The acknowledgement filter: CAKE's."""

from scpslab.lab.disciplines import DISCIPLINES, Discipline
from scpslab.plan.disciplines import Queue


class AckFilter(Discipline):
    """CAKE, of which only the filter is asked for: one queue for all, and its own CoDel put off for longer than any
    cell.
    """

    def root(self, rate_bps: int, overhead_bytes: int, queue: Queue) -> str:
        """CAKE releases a packet when its turn comes, as a token bucket does."""
        shaper = (
            f"cake bandwidth {rate_bps}bit besteffort flowblind interplanetary overhead {overhead_bytes} memlimit "
            f"{queue.room_bytes}"
        )
        return f"{shaper} ack-filter-aggressive"


DISCIPLINES.register("ack-filter", AckFilter())
