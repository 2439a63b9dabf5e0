"""RED: the kernel's, in a token bucket."""

from __future__ import annotations

from scpslab.lab.disciplines.base import TokenBucket
from scpslab.plan.disciplines import Queue

# The probability for each byte between the thresholds: tc takes nothing below 2^-31.
LEAST_SLOPE = 2.0**-30


class Red(TokenBucket):
    """Two thresholds and a probability."""

    def inside(self, rate_bps: int, queue: Queue) -> str:
        """As the plan says."""
        least, most = queue.red_min_bytes, queue.red_max_bytes
        assert least is not None
        assert most is not None
        assert queue.red_probability is not None
        # tc cannot state a probability of 0: the least that it can is a packet in many millions for each byte between the two thresholds.
        probability = queue.red_probability or (most - least) * LEAST_SLOPE
        burst = max(1, (2 * least + most) // 3000)
        words = f"red limit {queue.room_bytes} min {least} max {most} avpkt 1000 burst {burst} probability {probability} bandwidth {rate_bps}bit"
        return f"{words} ecn" if queue.ecn else words


KIND = Red()
