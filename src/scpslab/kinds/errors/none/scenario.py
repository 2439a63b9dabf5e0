"""No bit errors; drop lists and outages remain."""

from __future__ import annotations

from scpslab.scenario.errors import MODELS, ErrorModel


class NoModel(ErrorModel):
    """No bit is ever wrong."""


MODELS.register("none", NoModel)
