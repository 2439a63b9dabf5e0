"""Independent bit errors at a bit error rate: every bit is wrong with the same probability, whatever the others are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scpslab.scenario.errors.kind import BitErrorRate, ErrorModel

from scpslab.kinds.errors.independent.plan import Independent

if TYPE_CHECKING:
    from scpslab.scenario.errors.draws import Draws
    from scpslab.scenario.errors.kind import GapVector


class IndependentModel(ErrorModel):
    """Geometric gaps."""

    keys = BitErrorRate
    planned = Independent

    def has_errors(self, errors: BitErrorRate) -> bool:
        """At a rate above 0."""
        return errors.ber != 0

    def gaps(self, settings: Independent, n: int, draws: Draws) -> GapVector:
        """Gaps of `settings.ber` (probability per bit)."""
        import numpy as np

        ber = settings.ber
        return draws.geometric(ber, n) if ber > 0 else np.zeros(0, dtype=np.uint64)


KIND = IndependentModel()
