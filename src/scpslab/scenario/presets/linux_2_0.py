"""Preset `linux-2.0`: TCP of the NMSU tests of 1999 (ITC), Red Hat 5.2, on a kernel of today with what came later
switched off.

The paper calls it stock; windows are those of the kernel's captures of the period. As in `fy97-reno`, acknowledged
bytes are counted, and the first segments of a connection are acknowledged at once, unless a workload sees to that. The
first retransmission timeout is 1 s (RFC 6298) where it was 3 s: on slow lines that sends segments twice; `rto_min`
raises it together with the smallest one.
"""

from scpslab.scenario.presets.settings import reno

KIND = reno(
    title="TCP of Linux 2.0 (Red Hat 5.2): Reno, initial window 1, no SACK, no timestamps, windows of 31 KiB",
    # Acknowledgements of 40 bytes (ITC, unbalanced tests) say that there were none; SACK and window scaling came with
    # 2.2 too.
    timestamps=False,
    sack=False,
    window_scaling=False,
    # RFC 2001: one segment.
    initial_window=1,
    send_buffer=65_535,
    receive_buffer=31_744,
)
