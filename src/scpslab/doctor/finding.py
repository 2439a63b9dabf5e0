"""What a check of `scpslab doctor` says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """What a check found: ok, warning (works, but), or missing (the engine cannot run), and the command that mends it."""

    name: str
    state: Literal["ok", "warning", "missing"]
    found: str
    fix: str = ""
