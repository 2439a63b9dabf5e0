"""The acknowledgement filter has no settings."""

from __future__ import annotations

from scpslab.plan.disciplines import QueueSettings

KIND = QueueSettings
