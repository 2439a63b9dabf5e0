"""Packet loss without bit errors."""

from typing import ClassVar

from scpslab.plan.error_models import ErrorSettings
from scpslab.plan.values import Probability


class PacketLoss(ErrorSettings, kind="packet"):
    """Every packet is lost with the same probability, whatever its length."""

    NAMES_PACKETS: ClassVar[bool] = True

    loss: Probability

    def hit(self, bits: int) -> float:
        """As every packet."""
        return self.loss
