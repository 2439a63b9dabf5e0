"""The Gilbert–Elliott channel."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from scpslab.plan.error_models import ErrorSettings
from scpslab.plan.schema import Range
from scpslab.plan.values import Probability

Transition = Annotated[float, Range(above=0, most=1)]


class GilbertElliott(ErrorSettings, kind="gilbert-elliott"):
    """A good and a bad state. Transitions are per bit; where the clock is time, per nanosecond."""

    CHANNEL: ClassVar[Mapping[str, str]] = {
        "good_to_bad_per_bit": "p-good-bad",
        "bad_to_good_per_bit": "p-bad-good",
        "ber_good": "ber-good",
        "ber_bad": "ber-bad",
    }

    good_to_bad_per_bit: Transition
    bad_to_good_per_bit: Transition
    ber_good: Probability
    ber_bad: Probability
    clock: Literal["time"] | None = None

    @property
    def in_time(self) -> bool:
        """As the clock is."""
        return self.clock is not None

    def hit(self, bits: int) -> float:
        """Where the states count bits: one less the chance that a Markov chain passes so many without an error, by
        squaring its step. Where they count time, a packet meets one state.
        """
        leave_good, leave_bad = self.good_to_bad_per_bit, self.bad_to_good_per_bit
        share_bad = leave_good / (leave_good + leave_bad)
        right_good, right_bad = 1 - self.ber_good, 1 - self.ber_bad
        if self.in_time:
            return 1 - (1 - share_bad) * right_good**bits - share_bad * right_bad**bits
        step = (
            right_good * (1 - leave_good),
            right_good * leave_good,
            right_bad * leave_bad,
            right_bad * (1 - leave_bad),
        )
        good, bad, left = 1 - share_bad, share_bad, bits
        while left:
            a, b, c, d = step
            if left & 1:
                good, bad = good * a + bad * c, good * b + bad * d
            step = a * a + b * c, a * b + b * d, c * a + d * c, c * b + d * d
            left >>= 1
        return 1 - good - bad
