"""Presets of hosts with the kernel's TCP: one file a preset, and one line in NAMES, which names the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from scpslab.core.kinds import kinds_of
from scpslab.scenario.presets.settings import KernelSettings

NAMES = (
    "fy97-reno",
    "linux-2.0",
    "linux-2.2",
    "linux-2.4",
    "modern",
)
PRESETS: dict[str, KernelSettings] = kinds_of(__name__, NAMES)
if TYPE_CHECKING:
    Preset = str
else:
    Preset = Literal[NAMES]

__all__ = ["NAMES", "PRESETS", "KernelSettings", "Preset"]
