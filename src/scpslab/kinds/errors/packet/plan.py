"""Packet loss without bit errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from scpslab.plan.error_models import MODELS, ErrorSettings
from scpslab.plan.values import Probability


@dataclass(frozen=True, kw_only=True)
class PacketLoss(ErrorSettings):
    """Every packet is lost with the same probability, whatever its length."""

    NAMES_PACKETS: ClassVar[bool] = True

    loss: Probability

    def hit(self, bits: int) -> float:
        """As every packet."""
        return self.loss


MODELS.register("packet", PacketLoss)
