"""The result of a check of `scpslab doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """The state that a check found: ok, warning (works with a restriction) or missing (the engine cannot run); and the command that fixes it."""

    name: str
    state: Literal["ok", "warning", "missing"]
    found: str
    fix: str = ""
