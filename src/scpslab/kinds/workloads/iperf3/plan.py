"""Workload `iperf3`."""

from collections.abc import Iterator
from typing import Annotated, Literal

from scpslab.core.problems import Problem
from scpslab.plan.network import NetworkPlan
from scpslab.plan.schema import Range
from scpslab.plan.values import Amount, Period, Port, Rate, Word
from scpslab.plan.workloads import SECOND_NS, Traffic, full_packets, ns_to_send


class Iperf3(Traffic, kind="iperf3"):
    """iperf3, one-shot. One of `duration_ns` and `bytes_` is None; `udp_rate_bps` None: TCP."""

    kind: Literal["iperf3"] = "iperf3"
    duration_ns: Period | None
    bytes_: Amount | None
    port: Port
    congestion_control: Word | None
    segment_bytes: Amount | None
    reverse: bool
    udp_rate_bps: Rate | None
    parallel: Annotated[int, Range(1, 128)]
    timeout_ns: Period

    @property
    def own_control(self) -> str | None:
        """The flow's own."""
        return self.congestion_control

    def busy_ns(self, rate_bps: int | None) -> int:
        """Its time, or as long as its bytes take."""
        return self.duration_ns or ns_to_send(self.bytes_ or 0, rate_bps)

    def least_packets(self, rate_bps: int | None, mtu_bytes: int) -> int:
        """Full packets for its bytes, or as many as its rate (with TCP that of the slowest hop) lets it send in its
        time.
        """
        if self.duration_ns is None:
            return full_packets(self.bytes_ or 0, mtu_bytes)
        sent_bps = self.udp_rate_bps or rate_bps or 0
        return sent_bps * self.duration_ns // SECOND_NS // 8 // (self.segment_bytes or mtu_bytes)

    def problems(self, network: NetworkPlan) -> Iterator[Problem]:
        """It has one end, a time or a size."""
        if (self.duration_ns is None) == (self.bytes_ is None):
            yield Problem(("duration_ns",), "both or none of duration_ns and bytes", "one of them")
