"""Preset `linux-2.4`: TCP of the tests of 2005 (JZUS), Red Hat 7.3, on a kernel of today."""

from scpslab.scenario.presets.settings import reno

KIND = reno(
    title="TCP of Linux 2.4 (Red Hat 7.3): Reno with SACK and timestamps, initial window 3, buffers of 65,536 bytes",
    # JZUS Table 1: timestamps and window scaling on, buffers of 65,536 bytes, initial window 3 segments (4344 bytes).
    initial_window=3,
    send_buffer=65_536,
    receive_buffer=65_536,
)
