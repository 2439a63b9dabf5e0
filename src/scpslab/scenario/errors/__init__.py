"""Bit-error models: each is a way to make a gap vector, the distances in bits from one bit error to the next.

One draws the numbers of lost packets instead.

A model is a folder in scpslab.kinds. The link (stage 3, link-model §2) knows gap vectors only;
`vector.py` makes them.
"""

from __future__ import annotations

from scpslab.core.kinds import Layer
from scpslab.scenario.errors.kind import ErrorModel

MODELS: Layer[ErrorModel] = Layer("errors", "scenario")
# The rules by which errors are drawn, as a number that manifests have. 1, which 0.3.0 did not write: clusters began in
# the middle of one, Gilbert-Elliott channels in the good state, bit maps with what was left of them. 2: every model
# begins in its stationary state, a bit map with its first bit.
VECTOR_RULES = 2

__all__ = ["MODELS", "VECTOR_RULES", "ErrorModel"]
