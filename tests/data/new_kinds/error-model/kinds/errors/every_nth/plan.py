"""A wrong bit at even distances."""

from __future__ import annotations

from dataclasses import dataclass

from scpslab.plan.error_models import MODELS, ErrorSettings
from scpslab.plan.values import Amount


@dataclass(frozen=True, kw_only=True)
class EveryNth(ErrorSettings):
    """One bit of every so many is wrong."""

    every_bits: Amount


MODELS.register("every-nth", EveryNth)
