"""No bit errors; drop lists and outages remain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scpslab.errormodels.kind import ErrorModel
from scpslab.plan.error_models.none import NoErrors

if TYPE_CHECKING:
    from scpslab.errormodels.draws import Draws
    from scpslab.errormodels.kind import GapVector


class NoModel(ErrorModel):
    """No bit is ever wrong."""

    planned = NoErrors

    def gaps(self, settings: NoErrors, n: int, draws: Draws) -> GapVector:
        """None."""
        import numpy as np

        return np.zeros(0, dtype=np.uint64)


KIND = NoModel()
