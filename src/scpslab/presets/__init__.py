"""Presets of hosts with the kernel's TCP: one file a preset, one line in PRESETS and its name in the model (stacks/kernel.py)."""

from scpslab.presets.fy97_reno import FY97_RENO
from scpslab.presets.modern import MODERN
from scpslab.presets.settings import KernelSettings

PRESETS: dict[str, KernelSettings] = {
    "fy97-reno": FY97_RENO,
    "modern": MODERN,
}

__all__ = ["PRESETS", "KernelSettings"]
