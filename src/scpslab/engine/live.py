"""Engine `live`: the same lab kernel on the wall clock, for shells and for watching a transfer happen."""

from __future__ import annotations

from typing import ClassVar

from scpslab.engine.uml import UmlEngine
from scpslab.engine.wall_clock import on_the_wall_clock
from scpslab.plan import Plan


class LiveEngine(UmlEngine):
    """Real time and the host's randomness: results are measurements, not reproductions."""

    name: ClassVar[str] = "live"
    deterministic: ClassVar[bool] = False
    interactive: ClassVar[bool] = True
    clock: ClassVar[tuple[str, ...]] = ()

    def as_carried_out(self, plan: Plan) -> Plan:
        """The plan with a limit for the lab's lateness: a cell that does not keep real time fails."""
        return on_the_wall_clock(plan)
