"""The Gilbert–Elliott channel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from scpslab.plan.error_models import MODELS, ErrorSettings
from scpslab.plan.schema import Range
from scpslab.plan.values import Probability

Transition = Annotated[float, Range(above=0, most=1)]


@dataclass(frozen=True, kw_only=True)
class GilbertElliott(ErrorSettings):
    """A good and a bad state."""

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


MODELS.register("gilbert-elliott", GilbertElliott)
