"""Packet loss as other emulators have it (netem's `loss`, Mininet's TCLink): a share of the packets, drawn over their
numbers. It ignores length.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from scpslab.documents.parts import key
from scpslab.documents.quantities import Probability
from scpslab.scenario.errors import ErrorModel

from scpslab.kinds.errors.packet.plan import PacketLoss

if TYPE_CHECKING:
    from scpslab.scenario.draws import Draws, Floats, GapVector


class PacketLossModel(ErrorModel, kind="packet"):
    """Geometric distances between the numbers of lost packets.

    Attributes:
        loss: packet: probability that a packet is lost, whatever its length (drop_min_bytes spares the short ones).
    """

    loss: Probability = key(0.0, example="1 %")

    def has_errors(self) -> bool:
        """At a probability above 0."""
        return self.loss != 0

    @staticmethod
    def drawn(settings: PacketLoss, n: int, draws: Draws) -> Mapping[str, GapVector]:
        """The numbers of the first `n` packets that are lost, counted from 1 and ascending."""
        import numpy as np

        # Sums of distances near the end of 64 bits are beyond any lab: never, then.
        distances = draws.geometric(settings.loss, n) if settings.loss > 0 else np.zeros(0, dtype=np.uint64)
        return {".drops": np.cumsum(np.minimum(distances, np.uint64(1 << 40)), dtype=np.uint64)}

    @staticmethod
    def lost(settings: PacketLoss, drawn: Mapping[str, GapVector], bits: int) -> tuple[Floats, Floats]:
        """One of the packets from one that is lost to the next."""
        import numpy as np

        places = np.diff(drawn[".drops"].astype(np.float64), prepend=0)
        return np.ones_like(places), places
