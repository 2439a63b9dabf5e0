"""From a plan's `errors` to its gap vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from scpslab.errormodels.clustered import clustered
from scpslab.errormodels.draws import Draws
from scpslab.errormodels.gilbert_elliott import gilbert_elliott
from scpslab.errormodels.independent import independent
from scpslab.errormodels.vector_file import vector_file
from scpslab.plan.error_models import Errors

GapVector = npt.NDArray[np.uint64]

MODELS: dict[str, Callable[[Any, int, Draws], GapVector]] = {
    "independent": independent,
    "clustered": clustered,
    "gilbert-elliott": gilbert_elliott,
    "vector-file": vector_file,
}


def gap_vector(errors: Errors | None) -> GapVector:
    """The gaps (uint64[n], bits, each at least 1) of a plan's `errors`; empty when no bit is ever wrong.

    Gap 0 is the distance from just before the first bit to the first error; after the last one the vector repeats.
    """
    if errors is None or errors.model == "none":
        return np.zeros(0, dtype=np.uint64)
    draws = Draws(errors.seed)
    return MODELS[errors.model](errors.settings, errors.vector_errors, draws)
