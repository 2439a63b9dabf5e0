"""Engines: where a cell runs. One file an engine, one line in ENGINES."""

from scpslab.engine.base import CellRun, Engine
from scpslab.engine.host import HostEngine
from scpslab.engine.live import LiveEngine
from scpslab.engine.virtual import VirtualEngine

ENGINES: dict[str, type[Engine]] = {"virtual": VirtualEngine, "live": LiveEngine, "host": HostEngine}
# Where a person can be in the lab: in virtual time nobody would keep up.
INTERACTIVE: dict[str, type[LiveEngine] | type[HostEngine]] = {"live": LiveEngine, "host": HostEngine}

__all__ = ["ENGINES", "INTERACTIVE", "CellRun", "Engine"]
