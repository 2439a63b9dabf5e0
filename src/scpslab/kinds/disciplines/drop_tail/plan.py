"""Drop-tail has no settings, and the only serialiser that is exact."""

from __future__ import annotations

from scpslab.plan.disciplines.base import Discipline

KIND = Discipline(serialises=True)
