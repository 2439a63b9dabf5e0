"""Preset `fy97-reno`: TCP as the MITRE FY97 report ran it (sections 3.1 and A.1), on a kernel of today with what came
later switched off.

Two things cannot be switched off: Linux counts acknowledged bytes, so its window grows about twice as fast after a loss
when every second segment is acknowledged, and its smallest retransmission timeout is 200 ms where it was 1 s or 500 ms
ticks (`rto_min` raises it).
"""

from scpslab.scenario.presets.settings import reno

KIND = reno(
    title="TCP of the FY97 report: Reno, initial window 1, no SACK, delayed acknowledgements, fixed windows",
    # Whether there were timestamps the report does not say; 52-byte headers in its arithmetic suggest their 12 bytes.
    # RFC 2018 is of 1996; the report knows duplicate acknowledgements only.
    sack=False,
    # RFC 2001: one segment.
    initial_window=1,
    # 120 segments of 1400 bytes were under way at most, 143 were advertised (A.1): for the bandwidth-delay product of
    # 132,500 bytes, which needs scaling.
    send_buffer=168_000,
    receive_buffer=200_200,
)
