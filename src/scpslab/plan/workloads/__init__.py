"""Workloads: one file a kind, one line in NAMES, which is the list of all kinds for whoever describes, plans or runs them."""

from __future__ import annotations

from typing import Annotated

from scpslab.kinds import kinds_of
from scpslab.plan.schema import Kinds
from scpslab.plan.workloads.base import Traffic

NAMES = (
    "bulk",
    "endpoint",
    "ftp",
    "fp",
    "iperf3",
    "ping",
    "congestion",
    "policy",
)
WORKLOADS: dict[str, type[Traffic]] = kinds_of(__name__, NAMES)
Workload = Annotated[Traffic, Kinds("kind", WORKLOADS)]

__all__ = ["NAMES", "WORKLOADS", "Traffic", "Workload"]
