"""Clustered errors, as a Viterbi decoder without an interleaver makes them (apparatus §8, error-clustering calibration).

Error events come independently; an event holds a geometric number of bit errors with the stated mean, a few bits apart.
The mean bit error rate is kept: events are as much rarer as they are larger.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from scpslab.errormodels.draws import Draws
from scpslab.plan.error_models import Clustered


def clustered(settings: Clustered, n: int, draws: Draws) -> npt.NDArray[np.uint64]:
    """Gaps of `ber`, `mean_errors_per_burst` (default 4, the FY97 calibration) and `mean_gap_in_burst` (bits, default 3)."""
    ber = settings.ber
    if ber <= 0:
        return np.zeros(0, dtype=np.uint64)
    mean = settings.mean_errors_per_burst
    inner = settings.mean_gap_in_burst
    # One burst and the gap before it hold `mean` errors in outer + (mean - 1) inner bits, and that ratio is the bit error rate.
    outer = max(mean / ber - (mean - 1.0) * inner, 1.0)
    starts = draws.uniform(n) <= 1.0 / mean
    gaps = np.where(starts, draws.geometric(1.0 / outer, n), draws.geometric(1.0 / inner, n))
    return gaps.astype(np.uint64)
