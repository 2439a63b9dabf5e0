"""The bit error rate, a setting that several models share."""

from __future__ import annotations

from scpslab.documents.parts import Part, key
from scpslab.documents.quantities import Probability


class BitErrorRate(Part):
    """Settings of a model whose mean bit error rate can be said."""

    ber: Probability = key(0.0, says="Bit error rate, probability per bit (independent, clustered).", example=1e-6)
