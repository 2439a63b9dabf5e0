"""Preset `modern`: the kernel as it comes, with buffers large enough that they are never the limit on the paths of the
lab.
"""

from scpslab.scenario.presets.settings import KernelSettings

KIND = KernelSettings(title="Linux 6.12 as it comes: CUBIC, SACK, RACK, initial window 10, autotuned buffers")
