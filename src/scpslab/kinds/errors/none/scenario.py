"""No bit errors; drop lists and outages remain."""

from __future__ import annotations

from scpslab.scenario.errors import ErrorModel

from scpslab.kinds.errors.none.plan import NoErrors


class NoModel(ErrorModel):
    """No bit is ever wrong."""

    planned = NoErrors


KIND = NoModel
