"""Workload `ping`: round trips without a transport."""

from typing import Annotated, Literal

from scpslab.plan.schema import Range
from scpslab.plan.values import Period, Size
from scpslab.plan.workloads import Traffic


class Ping(Traffic, kind="ping"):
    """Echo requests, one every `interval_ns`."""

    kind: Literal["ping"] = "ping"
    count: Annotated[int, Range(1, 1_000_000)]
    interval_ns: Period
    payload_bytes: Size

    def busy_ns(self, rate_bps: int | None) -> int:
        """From the first request to the last."""
        return (self.count - 1) * self.interval_ns
