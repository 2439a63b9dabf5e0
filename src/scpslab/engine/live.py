"""Engine `live`: the same lab kernel on the wall clock, for shells and for watching a transfer happen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from scpslab.engine.base import CellRun
from scpslab.engine.needs import on_the_wall_clock
from scpslab.engine.uml import UmlEngine


class LiveEngine(UmlEngine):
    """Real time and the host's randomness: results are measurements, not reproductions."""

    name: ClassVar[str] = "live"
    deterministic: ClassVar[bool] = False
    clock_arguments: ClassVar[list[str]] = []

    def run(self, cell: CellRun) -> dict[str, Any]:
        """Runs a cell, and fails it where real time was not kept."""
        return super().run(replace(cell, plan=on_the_wall_clock(cell.plan)))

    def seed_arguments(self, plan: dict[str, Any]) -> list[str]:
        """None: the kernel takes its randomness from the host."""
        return []
