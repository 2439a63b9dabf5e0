"""No bit errors; drop lists and outages remain."""

from __future__ import annotations

from scpslab.scenario.errors import ErrorModel


class NoModel(ErrorModel):
    """No bit is ever wrong."""


KIND = NoModel
