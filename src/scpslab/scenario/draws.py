"""Random draws that never change, whatever numpy, C library and processor do: they are raw 64-bit output of PCG64, of
which a sample is compared, and logarithms made of operations that IEEE 754 rounds exactly. Library distributions and
`log` promise neither.
"""

import math
from functools import cache

import numpy as np
import numpy.typing as npt

from scpslab.core.errors import CapabilityError

Floats = npt.NDArray[np.float64]
GapVector = npt.NDArray[np.uint64]

# More bits than any lab passes, and a number that 64 signed bits hold.
NEVER = 2.0**62
# What PCG64 gives first for seed 1997.
SAMPLE = (12685338211655954053, 7224059681436585808, 4767347449767376722)
# ln 2 in two parts: the first has zeros at its end, so that its product with an exponent is exact (W. J. Cody, W. Waite
# 1980).
LN2_HIGH, LN2_LOW = 0.693145751953125, 1.42860682030941723212e-6
# atanh(s) = s + s^3/3 + s^5/5 + …; |s| is below 0.172 after the reduction, so the first term left out is below 1e-19 of
# the sum.
ODD = tuple(range(25, 0, -2))


class Draws:
    """A stream of draws from a seed of hex digits.

    Raises:
        CapabilityError: this numpy has another PCG64.
    """

    def __init__(self, seed: str) -> None:
        _check_generator()
        self._bits = np.random.PCG64(int(seed, 16))

    def uniform(self, n: int) -> Floats:
        """float64[n] in (0, 1]: 53 random bits each, never 0, so that its logarithm is finite."""
        raw = np.asarray(self._bits.random_raw(n), dtype=np.uint64)
        return ((raw >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53

    def geometric(self, p: float, n: int) -> GapVector:
        """uint64[n]: trials up to and with the first success of probability `p` each (inverse transform)."""
        if p >= 1.0:
            return np.ones(n, dtype=np.uint64)
        draws = log(self.uniform(n))
        # Of the smallest probabilities a quotient is no number any more: never, then.
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            gaps = np.nan_to_num(np.ceil(draws / log_of_miss(p)), nan=NEVER, posinf=NEVER)
        whole: GapVector = np.clip(gaps, 1.0, NEVER).astype(np.uint64)
        return whole


def log(x: Floats) -> Floats:
    """Natural logarithms of numbers above 0, within 2 units in the last place, by additions, multiplications and
    divisions alone.
    """
    mantissa, exponent = np.frexp(x)
    is_low = mantissa < math.sqrt(0.5)
    mantissa = np.where(is_low, 2.0 * mantissa, mantissa)
    power = exponent - is_low.astype(np.int64)
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square = s * s
    series = np.zeros_like(s)
    for odd in ODD:
        series = series * square + 1.0 / odd
    result: Floats = power * LN2_HIGH + (2.0 * s * series + power * LN2_LOW)
    return result


def log_of_miss(p: float) -> float:
    """ln(1 - p) of a probability; -inf for 1."""
    if p >= 1.0:
        return -math.inf
    if p > 0.25:
        return float(log(np.array([1.0 - p]))[0])
    s = p / (2.0 - p)
    series = 0.0
    for odd in ODD:
        series = series * s * s + 1.0 / odd
    return -2.0 * s * series


@cache
def _check_generator() -> None:
    if tuple(int(number) for number in np.random.PCG64(1997).random_raw(len(SAMPLE))) != SAMPLE:
        raise CapabilityError(
            f"numpy {np.__version__}: found another stream of PCG64; expected that of numpy 1.17 to 2. "
            "Install the numpy that requirements.lock names."
        )
