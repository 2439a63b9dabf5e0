"""Probe `losses`: what the stages of a direction decided of its packets."""

from __future__ import annotations

from typing import Literal

from scpslab.plan.probes import AtDirection


class Losses(AtDirection, kind="losses"):
    """Every packet of a direction that did not pass unharmed: `records/<name>.jsonl`."""

    kind: Literal["losses"] = "losses"

    @property
    def logged_direction(self) -> tuple[str, str]:
        """Its direction."""
        return self.link, self.direction
