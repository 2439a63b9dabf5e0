"""PIE: the kernel's, in a token bucket."""

from __future__ import annotations

from scpslab.lab.disciplines import DISCIPLINES, TokenBucket
from scpslab.plan.disciplines import FULL_PACKET_BYTES, Queue


class PieQueue(TokenBucket):
    """A target."""

    def inside(self, rate_bps: int, queue: Queue) -> str:
        """As the plan says; its limit counts packets."""
        packets = queue.limit_packets or max(1, queue.room_bytes // FULL_PACKET_BYTES)
        ecn = "ecn" if queue.ecn else "noecn"
        return f"pie limit {packets} target {queue.settings.target_ns // 1000}us {ecn}"


DISCIPLINES.register("pie", PieQueue())
