"""Workload `iperf3`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from scpslab.plan.schema import Range
from scpslab.plan.values import Amount, Period, Port, Rate, Word
from scpslab.plan.workloads.base import Traffic


@dataclass(frozen=True, kw_only=True)
class Iperf3(Traffic):
    """iperf3, one-shot. One of `duration_ns` and `bytes_` is None; `udp_rate_bps` None: TCP."""

    kind: Literal["iperf3"] = "iperf3"
    duration_ns: Period | None
    bytes_: Amount | None
    port: Port
    congestion: Word | None
    segment_bytes: Amount | None
    reverse: bool
    udp_rate_bps: Rate | None
    parallel: Annotated[int, Range(1, 128)]
    patience_ns: Period
