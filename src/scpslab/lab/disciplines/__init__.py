"""Queue disciplines in the words of tc: one file each, which has its name. The registry is in plan/disciplines."""

from __future__ import annotations

from scpslab.kinds import kinds_of
from scpslab.lab.disciplines.base import Discipline
from scpslab.plan import disciplines as planned

DISCIPLINES: dict[str, Discipline] = kinds_of(__name__, planned.DISCIPLINES)
