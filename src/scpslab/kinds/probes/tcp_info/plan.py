"""Probe `tcp_info`: a node's transport connections over time."""

from collections.abc import Iterator
from typing import Literal

from scpslab.core.problems import Problem
from scpslab.plan.network import NetworkPlan
from scpslab.plan.probes import Sampling
from scpslab.plan.values import Name, Period


class TcpInfo(Sampling, kind="tcp_info"):
    """Samples of a node's TCP connections: `records/<name>.jsonl`; of SCPS programs on it also their traces:
    `records/<workload>-<node>-trace.jsonl`.
    """

    kind: Literal["tcp_info"] = "tcp_info"
    node: Name
    interval_ns: Period

    @property
    def sampled_node(self) -> str:
        """Its node."""
        return self.node

    def problems(self, network: NetworkPlan) -> Iterator[Problem]:
        """Switches have no connections."""
        return network.not_speaking(self.node)
