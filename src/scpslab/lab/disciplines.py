"""What a queue discipline is in the lab: one or two of the kernel's, in the words of tc."""

from abc import ABC, abstractmethod
from typing import ClassVar

from scpslab.core.kinds import Registry
from scpslab.plan.disciplines import LARGEST_MANAGED_BYTES, LONGEST_HELD_S, Queue

ETHERNET_HEADER_BYTES = 14
# netem counts packets in its delay line against its limit; the largest value keeps it from ever dropping one.
NETEM_LIMIT = 1_000_000_000
# Holds packets until the times that the program `entering` gave them, where a rate changes. netem, which hardly delays
# them, takes them from their sockets, as it does where the rate is constant: no sender sees how long the queue is.
PACED = f"fq limit {NETEM_LIMIT} flow_limit {NETEM_LIMIT} nopacing timer_slack 0 horizon {LONGEST_HELD_S}s"
HOLDING = (f"root handle 1: netem limit {NETEM_LIMIT} delay 1ns", f"parent 1:1 handle 11: {PACED}")


class Discipline(ABC):
    """A queue discipline. Whether it gives packets their time on the line is said in plan/disciplines.

    `marks_at`: where the kernel's statistics of the discipline inside count the packets that it marked (uint32); None
    if it marks none.
    """

    marks_at: ClassVar[int | None] = None

    @abstractmethod
    def root(self, rate_bps: int, overhead_bytes: int, queue: Queue) -> str:
        """The kernel's discipline at the interface, and its options; `overhead_bytes` are the framing bytes of a packet
        beside its IP length.
        """

    def inside(self, rate_bps: int, queue: Queue) -> str | None:
        """The discipline within that at the interface, and its options."""
        return None


class TokenBucket(Discipline):
    """A token bucket of one packet with the discipline inside: it releases a packet when its turn comes, and stage 2
    adds its packet time.
    """

    def root(self, rate_bps: int, overhead_bytes: int, queue: Queue) -> str:
        """The bucket. tbf's own overhead cannot be negative; the size table's can."""
        sizes = f"stab overhead {overhead_bytes - ETHERNET_HEADER_BYTES} linklayer ethernet"
        return f"{sizes} tbf rate {rate_bps}bit burst {LARGEST_MANAGED_BYTES} limit {queue.room_bytes}"

    @abstractmethod
    def inside(self, rate_bps: int, queue: Queue) -> str:
        """The discipline itself."""


DISCIPLINES: Registry[Discipline] = Registry("disciplines", "lab")
