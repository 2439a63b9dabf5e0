"""A wrong bit at even distances: the last of every so many bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scpslab.core.problems import UnfitError
from scpslab.documents.parts import key
from scpslab.documents.quantities import Count
from scpslab.scenario.errors import ErrorModel

from scpslab.kinds.errors.every_nth import plan as in_plans

if TYPE_CHECKING:
    from scpslab.scenario.draws import Draws
    from scpslab.scenario.errors import GapVector


class EveryNthModel(ErrorModel, kind="every-nth"):
    """Even gaps."""

    every_bits: Count | None = key(
        None, says="every-nth: how many bits there are for one that is wrong.", example=80_000
    )

    def check_complete(self) -> None:
        """No distance."""
        if self.every_bits is None:
            raise UnfitError("the model every-nth without a distance", "every_bits")

    @staticmethod
    def gaps(settings: in_plans.EveryNth, n: int, draws: Draws) -> GapVector:
        """The same gap again and again."""
        import numpy as np

        return np.full(n, settings.every_bits, dtype=np.uint64)
