"""RED's settings."""

from __future__ import annotations

from dataclasses import dataclass

from scpslab.plan.disciplines.base import Discipline
from scpslab.plan.values import Probability, Size


@dataclass(frozen=True, kw_only=True)
class Red:
    """The average queue at which dropping begins, that at which every packet is dropped, and the probability just below it."""

    red_min_bytes: Size | None
    red_max_bytes: Size | None
    red_probability: Probability | None


KIND = Discipline(settings=Red)
