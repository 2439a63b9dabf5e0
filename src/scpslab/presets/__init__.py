"""Presets of hosts with the kernel's TCP: one file a preset, one line in PRESETS and its name in the model (stacks/kernel.py)."""

from scpslab.presets.fy97_reno import FY97_RENO
from scpslab.presets.linux_2_0 import LINUX_2_0
from scpslab.presets.linux_2_2 import LINUX_2_2
from scpslab.presets.linux_2_4 import LINUX_2_4
from scpslab.presets.modern import MODERN
from scpslab.presets.settings import KernelSettings

PRESETS: dict[str, KernelSettings] = {
    "fy97-reno": FY97_RENO,
    "linux-2.0": LINUX_2_0,
    "linux-2.2": LINUX_2_2,
    "linux-2.4": LINUX_2_4,
    "modern": MODERN,
}

__all__ = ["PRESETS", "KernelSettings"]
