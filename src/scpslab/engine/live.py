"""Engine `live`: the lab kernel on the wall clock."""

from typing import ClassVar

from scpslab.engine.uml import UmlEngine


class LiveEngine(UmlEngine):
    """Real time and the host's randomness: results are measurements, not reproductions."""

    name: ClassVar[str] = "live"
    summary: ClassVar[str] = "wall clock"
    deterministic: ClassVar[bool] = False
    interactive: ClassVar[bool] = True
    clock: ClassVar[tuple[str, ...]] = ()


KIND = LiveEngine
