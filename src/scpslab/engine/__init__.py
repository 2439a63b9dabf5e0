"""Engines run cells. One file per engine, one line in ENGINES."""

from scpslab.engine.base import CellRun, CellSample, Engine
from scpslab.engine.host import HostEngine
from scpslab.engine.uml import LiveEngine
from scpslab.engine.virtual import VirtualEngine

ENGINES: dict[str, type[Engine]] = {"virtual": VirtualEngine, "live": LiveEngine, "host": HostEngine}
INTERACTIVE = {name: engine for name, engine in ENGINES.items() if engine.interactive}
