"""A wrong bit at even distances."""

from __future__ import annotations

from scpslab.plan.error_models import ErrorSettings
from scpslab.plan.values import Amount


class EveryNth(ErrorSettings, kind="every-nth"):
    """One bit of every so many is wrong."""

    every_bits: Amount
