"""Queue disciplines as scenarios and planning know them: one file each, which has its name, and one line in the registry of plan/disciplines.

What the lab does for a discipline is in lab/disciplines.
"""

from __future__ import annotations

from scpslab.disciplines.kind import Discipline
from scpslab.kinds import kinds_of
from scpslab.plan import disciplines as planned

DISCIPLINES: dict[str, Discipline] = kinds_of(__name__, planned.DISCIPLINES)
# Those that can mark packets instead of dropping them.
MARKING = tuple(name for name, discipline in DISCIPLINES.items() if discipline.marks)

__all__ = ["DISCIPLINES", "MARKING", "Discipline"]
