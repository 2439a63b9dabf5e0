"""Workload `congestion`: FY97's generator of datagrams."""

from typing import ClassVar, Literal

from scpslab.plan.values import Amount, Period, Port, Size
from scpslab.plan.workloads import Traffic


class Background(Traffic, kind="background"):
    """FY97's generator.

    The rates were drawn when the plan was made; each is held for `redraw_ns`; `packet_bytes` is the IP length.

    It is never required: it stops with the last required workload.
    """

    kind: Literal["background"] = "background"
    max_rate_bps: Size
    redraw_ns: Period
    packet_bytes: Amount
    rates_bps: tuple[Size, ...]
    port: Port

    is_answered: ClassVar[bool] = False

    @property
    def drawn(self) -> tuple[float, ...]:
        """Its rates; none if it sends nothing."""
        return self.rates_bps if self.max_rate_bps else ()
