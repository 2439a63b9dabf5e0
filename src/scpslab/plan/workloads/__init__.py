"""Workloads: one file a kind, one line in WORKLOADS."""

from __future__ import annotations

from typing import Annotated

from scpslab.plan.schema import Kinds
from scpslab.plan.workloads.base import Traffic
from scpslab.plan.workloads.bulk import Bulk
from scpslab.plan.workloads.congestion import Congestion
from scpslab.plan.workloads.endpoint import Endpoint
from scpslab.plan.workloads.fp import Fp
from scpslab.plan.workloads.ftp import Ftp
from scpslab.plan.workloads.iperf3 import Iperf3
from scpslab.plan.workloads.ping import Ping

WORKLOADS: dict[str, type[Traffic]] = {
    "bulk": Bulk,
    "endpoint": Endpoint,
    "ftp": Ftp,
    "fp": Fp,
    "iperf3": Iperf3,
    "ping": Ping,
    "congestion": Congestion,
}
Workload = Annotated[Traffic, Kinds("kind", WORKLOADS)]

__all__ = ["WORKLOADS", "Bulk", "Congestion", "Endpoint", "Fp", "Ftp", "Iperf3", "Ping", "Traffic", "Workload"]
