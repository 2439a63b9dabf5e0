"""Bit-error models: each is a way to make a gap vector, the distances in bits from one bit error to the next.

One draws the numbers of lost packets instead.

One file a model, which has its name, and one line in the registry of plan/error_models. The link (stage 3, link-model §2) knows gap vectors only;
`vector.py` makes them.
"""

from __future__ import annotations

from scpslab.errormodels.kind import ErrorModel
from scpslab.kinds import kinds_of
from scpslab.plan import error_models

MODELS: dict[str, ErrorModel] = kinds_of(__name__, error_models.MODELS)
# The rules by which errors are drawn, as a number that manifests have. 1, which 0.3.0 did not write: clusters began in the middle of one, Gilbert-Elliott
# channels in the good state, bit maps with what was left of them. 2: every model begins in its stationary state, a bit map with its first bit.
VECTOR_RULES = 2

__all__ = ["MODELS", "VECTOR_RULES", "ErrorModel"]
