"""Engine `live`: the same lab kernel on the wall clock, for shells and for watching a transfer happen."""

from __future__ import annotations

from typing import Any, ClassVar

from scpslab.engine.uml import UmlEngine


class LiveEngine(UmlEngine):
    """Real time and the host's randomness: results are measurements, not reproductions."""

    name: ClassVar[str] = "live"
    deterministic: ClassVar[bool] = False
    clock_arguments: ClassVar[list[str]] = []

    def seed_arguments(self, plan: dict[str, Any]) -> list[str]:
        """None: the kernel takes its randomness from the host."""
        return []
