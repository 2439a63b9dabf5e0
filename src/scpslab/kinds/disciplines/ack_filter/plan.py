"""The acknowledgement filter has no settings."""

from __future__ import annotations

from scpslab.plan.disciplines import DISCIPLINES, QueueSettings

DISCIPLINES.register("ack-filter", QueueSettings)
