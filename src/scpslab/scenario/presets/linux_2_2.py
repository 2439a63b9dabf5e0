"""Preset `linux-2.2`: TCP of the NMSU tests of 2000 and 2001 (SmallSat, Aerospace), Red Hat 6.1 with kernel 2.2.12-20,
on a kernel of today.
"""

from scpslab.scenario.presets.settings import reno

KIND = reno(
    title="TCP of Linux 2.2 (Red Hat 6.1): Reno with SACK and timestamps, initial window 1, windows of 32,120 bytes",
    # SACK, timestamps and window scaling are on by default from 2.2 (apparatus B-03). The initial window: the papers do
    # not say; RFC 2001.
    initial_window=1,
    send_buffer=65_535,
    receive_buffer=32_120,
)
