"""Probe `queue`: the depth of a stage over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from scpslab.core.problems import Problem
from scpslab.plan.network import NetworkPlan
from scpslab.plan.probes import AtDirection, Sampling
from scpslab.plan.values import Period


class QueueDepth(AtDirection, Sampling, kind="queue"):
    """Samples of what waits in a stage of a direction: `records/<name>.jsonl`."""

    kind: Literal["queue"] = "queue"
    stage: Literal["queue", "delay"]
    interval_ns: Period

    @property
    def measured_stage(self) -> tuple[str, str, str]:
        """Its own."""
        return self.link, self.direction, self.stage

    def problems(self, network: NetworkPlan) -> Iterator[Problem]:
        """A link without a relay delays nothing."""
        yield from super().problems(network)
        if self.stage == "delay" and any(link.name == self.link and link.via is None for link in network.links):
            found = f"the delay stage of {self.link}, which has none"
            yield Problem(("stage",), found, "a link that goes through a switch", "Use stage queue.")
