"""Independent bit errors at a bit error rate: every bit is wrong with the same probability, whatever the others are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scpslab.scenario.errors import BitErrorRate

from scpslab.kinds.errors.independent.plan import Independent

if TYPE_CHECKING:
    from scpslab.scenario.draws import Draws, GapVector


class IndependentModel(BitErrorRate, kind="independent"):
    """Geometric gaps."""

    @staticmethod
    def gaps(settings: Independent, n: int, draws: Draws) -> GapVector:
        """Gaps of `settings.ber` (probability per bit)."""
        import numpy as np

        ber = settings.ber
        return draws.geometric(ber, n) if ber > 0 else np.zeros(0, dtype=np.uint64)
