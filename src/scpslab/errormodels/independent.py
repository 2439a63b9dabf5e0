"""Independent bit errors at a bit error rate: every bit is wrong with the same probability, whatever the others are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from scpslab.errormodels.draws import Draws
from scpslab.plan.error_models import Independent


def independent(settings: Independent, n: int, draws: Draws) -> npt.NDArray[np.uint64]:
    """Gaps of `settings.ber` (probability per bit): geometric."""
    ber = settings.ber
    return draws.geometric(ber, n) if ber > 0 else np.zeros(0, dtype=np.uint64)
