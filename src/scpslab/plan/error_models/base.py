"""What an error model draws from: the base of every model's settings in a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, kw_only=True)
class ErrorSettings:
    """The settings of a model that has none.

    `CHANNEL`: what `scps channel`, which draws on serial links, calls the settings of a model that it knows; None: it
    is given the model's bit map. `NAMES_PACKETS`: the model draws numbers of packets, for a drop list, and no bit
    errors.
    """

    NAMES_PACKETS: ClassVar[bool] = False
    CHANNEL: ClassVar[Mapping[str, str] | None] = None

    def hit(self, bits: int) -> float | None:
        """The probability that errors hit a packet of so many bits; None where no closed form is known."""
        return None
