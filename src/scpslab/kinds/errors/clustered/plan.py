"""Clustered bit errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from scpslab.plan.error_models import MODELS, BitErrorRate
from scpslab.plan.schema import Range

Mean = Annotated[float, Range(least=1, most=1e15)]


@dataclass(frozen=True, kw_only=True)
class Clustered(BitErrorRate):
    """Error events with several wrong bits each."""

    CHANNEL: ClassVar[Mapping[str, str]] = {
        "ber": "ber",
        "mean_errors_per_burst": "burst-errors",
        "mean_gap_in_burst": "burst-gap",
    }

    mean_errors_per_burst: Mean
    mean_gap_in_burst: Mean

    def hit(self, bits: int) -> float:
        """Bursts of n errors begin with probability ber / n at each bit, and reach over n - 1 gaps."""
        span = (self.mean_errors_per_burst - 1) * self.mean_gap_in_burst
        return float(1 - (1 - self.ber / self.mean_errors_per_burst) ** (bits + span))


MODELS.register("clustered", Clustered)
