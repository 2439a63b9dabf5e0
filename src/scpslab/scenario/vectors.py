"""From a plan's `errors` to its gap vector or its lost packets, and to the bit map of a serial link."""

from __future__ import annotations

import numpy as np

from scpslab.plan.error_models import Errors
from scpslab.scenario.draws import Draws, GapVector
from scpslab.scenario.errors import LONGEST_MAP_BITS, MODELS


def gap_vector(errors: Errors | None) -> GapVector:
    """The gaps (uint64[n], bits, each at least 1) of a plan's `errors`; empty when no bit is ever wrong.

    Gap 0 is the distance from just before the first bit to the first error. All others repeat: the last one leads to
    the error that gap 0 led to.
    """
    if errors is None:
        return np.zeros(0, dtype=np.uint64)
    return MODELS[errors.model].gaps(errors.settings, max(errors.vector_errors, 2), Draws(errors.seed))


def lost_packets(errors: Errors | None) -> GapVector:
    """The numbers of the packets that a plan's `errors` draw for the drop list, ascending from at least 1; none of a
    model of bit errors.
    """
    if errors is None or not errors.settings.NAMES_PACKETS:
        return np.zeros(0, dtype=np.uint64)
    return MODELS[errors.model].lost_packets(errors.settings, errors.vector_errors, Draws(errors.seed))


def bit_map(errors: Errors, vector_bits: int) -> bytes | None:
    """The bit map of a serial link that repeats drawn vectors after `vector_bits` (0: never); None where its channel
    draws the errors by itself.
    """
    if errors.settings.CHANNEL is not None:
        return None
    bits = min(vector_bits or LONGEST_MAP_BITS, LONGEST_MAP_BITS)
    return MODELS[errors.model].bit_map(errors.settings, errors.vector_errors, Draws(errors.seed), bits)
