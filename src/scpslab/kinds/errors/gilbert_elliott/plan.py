"""The Gilbert–Elliott channel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from scpslab.plan.error_models import ErrorSettings
from scpslab.plan.schema import Range
from scpslab.plan.values import Probability

Transition = Annotated[float, Range(above=0, most=1)]


@dataclass(frozen=True, kw_only=True)
class GilbertElliott(ErrorSettings):
    """A good and a bad state."""

    CHANNEL: ClassVar[Mapping[str, str]] = {
        "p_good_bad": "p-good-bad",
        "p_bad_good": "p-bad-good",
        "ber_good": "ber-good",
        "ber_bad": "ber-bad",
    }

    p_good_bad: Transition
    p_bad_good: Transition
    ber_good: Probability
    ber_bad: Probability


KIND = GilbertElliott
