"""Engines run cells. One file an engine, one line in NAMES."""

from importlib import import_module

from scpslab.engine.base import CellRun, CellSample, Engine

# A line for each, the one that runs are made with unless somebody names another first. Its module says what KIND is
# there.
NAMES = (
    "virtual",
    "live",
    "host",
)
DEFAULT = NAMES[0]
ENGINES: dict[str, type[Engine]] = {name: import_module(f"{__name__}.{name}").KIND for name in NAMES}
INTERACTIVE = {name: engine for name, engine in ENGINES.items() if engine.interactive}
