"""Queue disciplines in the words of tc: a folder each in scpslab.kinds."""

from __future__ import annotations

from scpslab.core.kinds import Layer
from scpslab.lab.disciplines.base import Discipline

DISCIPLINES: Layer[Discipline] = Layer("disciplines", "lab")
