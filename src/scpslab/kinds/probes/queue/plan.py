"""Probe `queue`: the depth of a stage over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from scpslab.plan.probes import AtDirection, Sampling
from scpslab.plan.values import Period


@dataclass(frozen=True, kw_only=True)
class QueueDepth(AtDirection, Sampling):
    """Samples of what waits in a stage of a direction: `records/<name>.jsonl`."""

    kind: Literal["queue"] = "queue"
    stage: Literal["queue", "delay"]
    interval_ns: Period


KIND = QueueDepth
