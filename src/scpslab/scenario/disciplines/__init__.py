"""Queue disciplines as scenarios and planning know them: a folder each in scpslab.kinds."""

from __future__ import annotations

from scpslab.core.kinds import Layer
from scpslab.scenario.disciplines.kind import Discipline

DISCIPLINES: Layer[Discipline] = Layer("disciplines", "scenario")
# Those that can mark packets instead of dropping them.
MARKING = tuple(name for name, discipline in DISCIPLINES.items() if discipline.planned.MARKS)

__all__ = ["DISCIPLINES", "MARKING", "Discipline"]
