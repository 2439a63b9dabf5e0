"""Bit-error models: each is a way to make a gap vector, the distances in bits from one bit error to the next.

One file a model, which has its name, and one line in the registry of plan/error_models. The link (stage 3, link-model §2) knows gap vectors only;
`vector.py` makes them.
"""

from __future__ import annotations

from scpslab.errormodels.kind import ErrorModel
from scpslab.kinds import kinds_of
from scpslab.plan import error_models

MODELS: dict[str, ErrorModel] = kinds_of(__name__, error_models.MODELS)

__all__ = ["MODELS", "ErrorModel"]
