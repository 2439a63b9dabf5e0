"""The project's version, which tools/build-images tags images with."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import scpslab


@cache
def version() -> str:
    """The version in pyproject.toml."""
    found: str = tomllib.loads((Path(scpslab.__file__).parents[2] / "pyproject.toml").read_text())["project"]["version"]
    return found
