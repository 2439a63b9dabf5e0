"""Packet loss as other emulators have it (netem's `loss`, Mininet's TCLink): a share of the packets, drawn over their
numbers. It ignores length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scpslab.documents.parts import key
from scpslab.documents.quantities import Probability
from scpslab.scenario.errors import MODELS, ErrorModel

from scpslab.kinds.errors.packet.plan import PacketLoss

if TYPE_CHECKING:
    from scpslab.scenario.draws import Draws, GapVector


class PacketLossModel(ErrorModel):
    """Geometric distances between the numbers of lost packets."""

    loss: Probability = key(
        0.0,
        says="packet: probability that a packet is lost, whatever its length (drop_min_bytes spares the short ones).",
        example="1 %",
    )

    def has_errors(self) -> bool:
        """At a probability above 0."""
        return self.loss != 0

    @staticmethod
    def lost_packets(settings: PacketLoss, n: int, draws: Draws) -> GapVector:
        """The first `n` of them."""
        import numpy as np

        # Sums of distances near the end of 64 bits are beyond any lab: never, then.
        distances = draws.geometric(settings.loss, n) if settings.loss > 0 else np.zeros(0, dtype=np.uint64)
        return np.cumsum(np.minimum(distances, np.uint64(1 << 40)), dtype=np.uint64)


MODELS.register("packet", PacketLossModel)
