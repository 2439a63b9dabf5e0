"""The topologies of the project: found by file name, read as modules."""

from __future__ import annotations

import importlib.util
from functools import cache
from types import ModuleType

from scpslab.core.project import ROOT

FOLDER = ROOT / "topologies"


def names() -> list[str]:
    """The names of all topologies."""
    return sorted(file.stem for file in FOLDER.glob("*.py"))


@cache
def module(name: str) -> ModuleType:
    """The module of a topology: PARAMETERS and describe. Raises KeyError for an unknown name."""
    path = FOLDER / f"{name}.py"
    if not path.is_file():
        raise KeyError(name)
    spec = importlib.util.spec_from_file_location(f"scpslab_topologies.{name}", path)
    if spec is None or spec.loader is None:
        raise KeyError(name)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded
