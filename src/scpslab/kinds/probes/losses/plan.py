"""Probe `losses`: what the stages of a direction decided of its packets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from scpslab.plan.probes import PROBES, AtDirection


@dataclass(frozen=True, kw_only=True)
class Losses(AtDirection):
    """Every packet of a direction that did not pass unharmed: `records/<name>.jsonl`."""

    kind: Literal["losses"] = "losses"

    @property
    def logged_direction(self) -> tuple[str, str]:
        """Its direction."""
        return self.link, self.direction


PROBES.register("losses", Losses)
