"""Bit-error models: each is a way to make a gap vector, the distances in bits from one bit error to the next.

One file a model, one line in MODELS. The link (stage 3, link-model §2) knows gap vectors only.
"""

from scpslab.errormodels.vector import MODELS, gap_vector
from scpslab.errormodels.vector_file import bit_map

__all__ = ["MODELS", "bit_map", "gap_vector"]
