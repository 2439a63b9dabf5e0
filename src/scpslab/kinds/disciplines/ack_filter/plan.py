"""The acknowledgement filter has no settings."""

from __future__ import annotations

from scpslab.plan.disciplines.base import Discipline

KIND = Discipline()
