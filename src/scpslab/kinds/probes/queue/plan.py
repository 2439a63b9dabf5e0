"""Probe `queue`: the depth of a stage over time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from scpslab.plan.places import Places, Problem
from scpslab.plan.probes import Sampling
from scpslab.plan.values import Name, Period


@dataclass(frozen=True, kw_only=True)
class QueueDepth(Sampling):
    """Samples of what waits in a stage of a direction: `records/<name>.jsonl`."""

    kind: Literal["queue"] = "queue"
    link: Name
    direction: Name
    stage: Literal["queue", "delay"]
    interval_ns: Period

    def problems(self, places: Places) -> Iterable[Problem]:
        """The direction is there."""
        return places.not_directions(self.link, [self.direction])


KIND = QueueDepth
