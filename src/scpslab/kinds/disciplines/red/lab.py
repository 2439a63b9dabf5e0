"""RED: the kernel's, in a token bucket."""

from scpslab.lab.disciplines import DISCIPLINES, TokenBucket
from scpslab.plan.disciplines import Queue

from scpslab.kinds.disciplines.red import plan as planned
from scpslab.kinds.disciplines.red.plan import AVERAGE_PACKET_BYTES, SLOPE_LIMIT, burst_packets

# The probability for each byte between the thresholds where a plan says 0.
LEAST_SLOPE = 2 * SLOPE_LIMIT


class Red(TokenBucket):
    """Two thresholds and a probability."""

    marks_at = 12  # tc_red_xstats.marked (linux/pkt_sched.h)

    def inside(self, rate_bps: int, queue: Queue) -> str:
        """As the plan says."""
        settings = queue.settings
        assert isinstance(settings, planned.Red)
        least, most = settings.min_bytes, settings.max_bytes
        # tc cannot state a probability of 0: the least that it can is a packet in many millions for each byte between
        # the two thresholds.
        probability = settings.probability or (most - least) * LEAST_SLOPE
        words = (
            f"red limit {queue.room_bytes} min {least} max {most} avpkt {AVERAGE_PACKET_BYTES} burst "
            f"{burst_packets(least, most)}"
        )
        words += f" probability {probability} bandwidth {rate_bps}bit"
        return f"{words} ecn" if queue.ecn else words


DISCIPLINES.register("red", Red())
