"""The Gilbert–Elliott channel (Gilbert 1960, Elliott 1963), bit by bit: a good and a bad state with a bit error rate
each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from scpslab.documents.parts import key
from scpslab.documents.quantities import Probability
from scpslab.scenario.errors import MODELS, ErrorModel

from scpslab.kinds.errors.gilbert_elliott.plan import GilbertElliott

if TYPE_CHECKING:
    from scpslab.scenario.draws import Draws, GapVector

BLOCK = 1 << 14
# Errors in a visit of a state. With fewer, drawing the visits takes hours, for nearly all bring none; and nearly none
# brings two, so that errors come one by one, as those of the model `independent` do.
FEWEST_PER_VISIT = 1e-4


class GilbertElliottModel(ErrorModel):
    """A good and a bad state."""

    good_to_bad_per_bit: Probability = key(
        0.0, says="gilbert-elliott: probability per bit of a transition from the good to the bad state.", example=1e-6
    )
    bad_to_good_per_bit: Probability = key(
        0.0, says="gilbert-elliott: probability per bit of a transition from the bad to the good state.", example=1e-3
    )
    ber_good: Probability = key(0.0, says="gilbert-elliott: bit error rate in the good state.", example=0.0)
    ber_bad: Probability = key(0.0, says="gilbert-elliott: bit error rate in the bad state.", example=1e-2)

    def incomplete(self) -> str | None:
        """A state that is never reached, or never left."""
        if self.good_to_bad_per_bit and self.bad_to_good_per_bit:
            return None
        found = "found the model gilbert-elliott without transitions"
        return f"{found}; expected good_to_bad_per_bit and bad_to_good_per_bit above 0"

    @staticmethod
    def gaps(settings: GilbertElliott, n: int, draws: Draws) -> GapVector:
        """Gaps of two states with transitions and bit error rates of their own.

        The vector begins in the bad state as often as the channel is there.
        """
        import numpy as np

        from scpslab.scenario.draws import NEVER, log_of_miss

        leave = (settings.good_to_bad_per_bit, settings.bad_to_good_per_bit)
        ber = (settings.ber_good, settings.ber_bad)
        if ber == (0.0, 0.0):
            return np.zeros(0, dtype=np.uint64)
        if ber[0] < FEWEST_PER_VISIT * leave[0] and ber[1] < FEWEST_PER_VISIT * leave[1]:
            return draws.geometric((leave[1] * ber[0] + leave[0] * ber[1]) / sum(leave), n)
        logs = tuple(log_of_miss(p) for p in (*leave, *ber))
        stream = _stream(draws)

        def geometric(which: int) -> float:
            log = logs[which]
            return np.inf if log == 0.0 else max(1.0, np.ceil(next(stream) / log))

        gaps: list[int] = []
        share_bad = settings.good_to_bad_per_bit / (settings.good_to_bad_per_bit + settings.bad_to_good_per_bit)
        state, since_error = int(draws.uniform(1)[0] <= share_bad), 0.0
        stay = geometric(state)
        while len(gaps) < n:
            to_error = geometric(2 + state)
            if to_error <= stay:
                gaps.append(int(min(since_error + to_error, NEVER)))
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
    from scpslab.scenario.draws import log

    while True:
        yield from log(draws.uniform(BLOCK)).tolist()


MODELS.register("gilbert-elliott", GilbertElliottModel)
