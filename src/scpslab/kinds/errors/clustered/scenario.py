"""Clustered errors, as a Viterbi decoder without an interleaver makes them (apparatus §8, error-clustering
calibration).

Error events come independently; an event holds a geometric number of bit errors with the stated mean, a few bits apart.
The mean bit error rate is kept: events are as much rarer as they are larger. A vector begins anywhere in the channel's
life, seldom inside an event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scpslab.core.problems import UnfitError
from scpslab.documents.parts import key
from scpslab.scenario.errors import BitErrorRate

from scpslab.kinds.errors.clustered.plan import Clustered

if TYPE_CHECKING:
    from scpslab.scenario.draws import Draws, GapVector


class ClusteredModel(BitErrorRate, kind="clustered"):
    """Error events with several wrong bits each.

    Attributes:
        mean_errors_per_burst: clustered: mean bit errors of an event; 4 fits the FY97 measurements.
        mean_gap_in_burst: clustered: mean distance between errors of an event, in bits.
    """

    mean_errors_per_burst: float = key(4.0, least=1, most=1e15, example=4.0)
    mean_gap_in_burst: float = key(3.0, least=1, most=1e15, example=3.0)

    def check_complete(self) -> None:
        """Refuses a rate that is higher than within a cluster."""
        densest = self.mean_errors_per_burst / ((self.mean_errors_per_burst - 1) * self.mean_gap_in_burst + 1)
        if self.ber > densest:
            raise UnfitError(f"ber {self.ber:g} in clusters", f"at most {densest:g}, the rate inside a cluster")

    @staticmethod
    def gaps(settings: Clustered, n: int, draws: Draws) -> GapVector:
        """Gaps of `ber`, `mean_errors_per_burst` (default 4, the FY97 calibration) and `mean_gap_in_burst` (bits,
        default 3).

        Gaps are a renewal process of two geometric laws. From a bit that is chosen at random the next error is as far
        as in its stationary state (Feller, An Introduction to Probability Theory, vol. 2, XI.4): each law as often as
        the bits that it covers, and a geometric law has no memory.
        """
        import numpy as np

        ber = settings.ber
        if ber <= 0:
            return np.zeros(0, dtype=np.uint64)
        mean = settings.mean_errors_per_burst
        inner = settings.mean_gap_in_burst
        # One burst and the gap before it hold `mean` errors in outer + (mean - 1) inner bits, and that ratio is the bit
        # error rate.
        outer = max(mean / ber - (mean - 1.0) * inner, 1.0)
        starts = draws.uniform(n) <= 1.0 / mean
        outer_bits, inner_bits = outer / mean, (1.0 - 1.0 / mean) * inner
        starts[0] = draws.uniform(1)[0] > inner_bits / (outer_bits + inner_bits)
        gaps = np.where(starts, draws.geometric(1.0 / outer, n), draws.geometric(1.0 / inner, n))
        return gaps.astype(np.uint64)
