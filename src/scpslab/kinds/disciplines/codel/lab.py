"""CoDel: the kernel's, in a token bucket."""

from scpslab.lab.disciplines import DISCIPLINES, TokenBucket
from scpslab.plan.disciplines import FULL_PACKET_BYTES, Queue

from scpslab.kinds.disciplines.codel import plan as planned


class Codel(TokenBucket):
    """A target and an interval."""

    marks_at = 24  # tc_codel_xstats.ecn_mark (linux/pkt_sched.h)

    def inside(self, rate_bps: int, queue: Queue) -> str:
        """As the plan says; its limit counts packets."""
        settings = queue.settings
        assert isinstance(settings, planned.Codel)
        packets = queue.limit_packets or max(1, queue.room_bytes // FULL_PACKET_BYTES)
        ecn = "ecn" if queue.ecn else "noecn"
        return (
            f"codel limit {packets} target {settings.target_ns // 1000}us interval {settings.interval_ns // 1000}us "
            f"{ecn}"
        )


DISCIPLINES.register("codel", Codel())
