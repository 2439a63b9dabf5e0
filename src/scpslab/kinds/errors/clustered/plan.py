"""Clustered bit errors."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from scpslab.plan.error_models import BitErrorRate
from scpslab.plan.schema import Range

Mean = Annotated[float, Range(least=1, most=1e15)]


class Clustered(BitErrorRate, kind="clustered"):
    """Error events with several wrong bits each."""

    CHANNEL: ClassVar[Mapping[str, str]] = {
        "ber": "ber",
        "mean_errors_per_burst": "burst-errors",
        "mean_gap_in_burst": "burst-gap",
    }

    mean_errors_per_burst: Mean
    mean_gap_in_burst: Mean

    def hit(self, bits: int) -> float:
        """From any bit the next error is as far as by the law of gaps inside a burst, or between two, each as often as
        the bits that it covers.
        """
        if not self.ber:
            return 0.0
        between = max(self.mean_errors_per_burst / self.ber - self.inside, 1.0)
        share = between / (between + self.inside)
        clean = share * (1 - 1 / between) ** bits + (1 - share) * (1 - 1 / self.mean_gap_in_burst) ** bits
        return float(1 - clean)

    @property
    def inside(self) -> float:
        """The bits of a burst's gaps."""
        return (self.mean_errors_per_burst - 1) * self.mean_gap_in_burst
