"""Probe `counters`: the packets that a node's interfaces have counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from scpslab.core.problems import Problem
from scpslab.plan.network import NetworkPlan
from scpslab.plan.probes import Sampling
from scpslab.plan.values import Name, Period


class Counters(Sampling, kind="counters"):
    """Samples of the counters of a node's interfaces: `records/<name>.jsonl`."""

    kind: Literal["counters"] = "counters"
    node: Name
    interval_ns: Period

    def problems(self, network: NetworkPlan) -> Iterator[Problem]:
        """A switch has no namespace of its own."""
        return network.not_speaking(self.node)
