"""Probe `verdicts`: what the stages of a direction decided of its packets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from scpslab.plan.places import Places, Problem
from scpslab.plan.probes import Observer
from scpslab.plan.values import Name


@dataclass(frozen=True, kw_only=True)
class Verdicts(Observer):
    """Every packet of a direction that did not pass unharmed: `records/<name>.jsonl`."""

    kind: Literal["verdicts"] = "verdicts"
    link: Name
    direction: Name

    @property
    def logged_direction(self) -> tuple[str, str]:
        """Its direction."""
        return self.link, self.direction

    def problems(self, places: Places) -> Iterable[Problem]:
        """The direction is there."""
        return places.not_directions(self.link, [self.direction])


KIND = Verdicts
