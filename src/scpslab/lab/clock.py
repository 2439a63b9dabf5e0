"""The lab's clocks: wall clock (virtual in virtual time) and the epoch that every record counts from."""

from __future__ import annotations

import time

SECOND_NS = 1_000_000_000


def monotonic_offset_ns() -> int:
    """What the wall clock is ahead of the monotonic clock, ns."""
    return time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class Epoch:
    """The instant the network is up: a whole second of the wall clock, zero of `t_s` in every record."""

    def __init__(self) -> None:
        self.realtime_ns = (time.clock_gettime_ns(time.CLOCK_REALTIME) // SECOND_NS + 1) * SECOND_NS
        self.offset_ns = monotonic_offset_ns()

    def t_s(self, realtime_ns: int) -> float:
        """Seconds since the epoch of a wall-clock instant, to 1 ns."""
        return round((realtime_ns - self.realtime_ns) / SECOND_NS, 9)

    def now_s(self) -> float:
        """Seconds since the epoch, now."""
        return self.t_s(time.clock_gettime_ns(time.CLOCK_REALTIME))

    def monotonic_t_s(self, monotonic_ns: int) -> float:
        """Seconds since the epoch of an instant of the monotonic clock."""
        return self.t_s(monotonic_ns + self.offset_ns)

    def monotonic_ns(self, t_ns: int) -> int:
        """The monotonic instant that lies `t_ns` after the epoch."""
        return self.realtime_ns + t_ns - self.offset_ns
