"""The Gilbert–Elliott channel (Gilbert 1960, Elliott 1963), bit by bit: a good and a bad state with a bit error rate each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from scpslab.errormodels.draws import Draws
from scpslab.plan.error_models import GilbertElliott

BLOCK = 1 << 14


def gilbert_elliott(settings: GilbertElliott, n: int, draws: Draws) -> npt.NDArray[np.uint64]:
    """Gaps of `p_good_bad`, `p_bad_good` (transition probabilities per bit) and `ber_good`, `ber_bad`; starts in the good state."""
    leave = (settings.p_good_bad, settings.p_bad_good)
    ber = (settings.ber_good, settings.ber_bad)
    if ber == (0.0, 0.0):
        return np.zeros(0, dtype=np.uint64)
    logs = tuple(float(np.log1p(-p)) if p < 1.0 else -np.inf for p in (*leave, *ber))
    stream = _stream(draws)

    def geometric(which: int) -> float:
        log = logs[which]
        return np.inf if log == 0.0 else max(1.0, np.ceil(next(stream) / log))

    gaps: list[int] = []
    state, since_error = 0, 0.0
    stay = geometric(0)
    while len(gaps) < n:
        to_error = geometric(2 + state)
        if to_error <= stay:
            gaps.append(int(since_error + to_error))
            since_error = 0.0
            stay -= to_error
        else:
            since_error += stay
            stay = 0.0
        if stay <= 0.0:
            state = 1 - state
            stay = geometric(state)
    return np.array(gaps, dtype=np.uint64)


def _stream(draws: Draws) -> Iterator[float]:
    while True:
        yield from np.log(draws.uniform(BLOCK)).tolist()
