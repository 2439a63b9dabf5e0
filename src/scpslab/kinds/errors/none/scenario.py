"""No bit errors; drop lists and outages remain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scpslab.scenario.errors.kind import ErrorModel

from scpslab.kinds.errors.none.plan import NoErrors

if TYPE_CHECKING:
    from scpslab.scenario.errors.draws import Draws
    from scpslab.scenario.errors.kind import GapVector


class NoModel(ErrorModel):
    """No bit is ever wrong."""

    planned = NoErrors

    def gaps(self, settings: NoErrors, n: int, draws: Draws) -> GapVector:
        """None."""
        import numpy as np

        return np.zeros(0, dtype=np.uint64)


KIND = NoModel()
