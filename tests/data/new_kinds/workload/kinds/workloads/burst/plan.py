"""Workload `burst`: a number of datagrams at a rate."""

from __future__ import annotations

from typing import Literal

from scpslab.plan.values import Amount, Port, Rate
from scpslab.plan.workloads import Traffic


class Burst(Traffic, kind="burst"):
    """Datagrams of `packet_bytes` (the IP length), one after the other."""

    kind: Literal["burst"] = "burst"
    datagrams: Amount
    packet_bytes: Amount
    rate_bps: Rate
    port: Port

    @property
    def duration_ns(self) -> int:
        """From the first to the end of the last."""
        return self.datagrams * self.packet_bytes * 8 * 10**9 // self.rate_bps

    def busy_ns(self, rate_bps: int | None) -> int:
        """As long as it is sent."""
        return self.duration_ns
