"""Preset `four-segments`: a kernel of today that begins with four segments (RFC 3390) and Vegas."""

from dataclasses import replace

from scpslab.scenario.presets.modern import KIND as MODERN

KIND = replace(MODERN, title="Vegas, initial window 4", congestion="vegas", initial_window=4)
