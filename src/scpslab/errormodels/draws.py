"""Random draws that never change: made from the raw 64-bit output of PCG64, not from library distributions, whose streams may."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

# More bits than any lab passes, and a number that 64 signed bits hold.
NEVER = 2.0**62


class Draws:
    """A stream of draws from a seed of hex digits."""

    def __init__(self, seed: str) -> None:
        self._bits = np.random.PCG64(int(seed, 16))

    def uniform(self, n: int) -> npt.NDArray[np.float64]:
        """float64[n] in (0, 1]: 53 random bits each, never 0, so that its logarithm is finite."""
        raw = np.asarray(self._bits.random_raw(n), dtype=np.uint64)
        return ((raw >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53

    def geometric(self, p: float, n: int) -> npt.NDArray[np.uint64]:
        """uint64[n]: trials up to and with the first success of probability `p` each (inverse transform)."""
        if p >= 1.0:
            return np.ones(n, dtype=np.uint64)
        draws = np.log(self.uniform(n))
        log = np.log1p(-p)
        # Of the smallest probabilities a quotient is no number any more: never, then.
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            gaps = np.nan_to_num(np.ceil(draws / log), nan=NEVER, posinf=NEVER)
        whole: npt.NDArray[np.uint64] = np.clip(gaps, 1.0, NEVER).astype(np.uint64)
        return whole
