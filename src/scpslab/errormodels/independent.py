"""Independent bit errors at a bit error rate: every bit is wrong with the same probability, whatever the others are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from scpslab.errormodels.draws import Draws


def independent(settings: Mapping[str, Any], n: int, draws: Draws) -> npt.NDArray[np.uint64]:
    """Gaps of `settings["ber"]` (probability per bit): geometric."""
    ber = float(settings["ber"])
    return draws.geometric(ber, n) if ber > 0 else np.zeros(0, dtype=np.uint64)
