"""Preset `fy97-reno`: TCP as the MITRE FY97 report ran it (sections 3.1 and A.1), on a kernel of today with what came later switched off.

Two things cannot be switched off: Linux counts acknowledged bytes, so its window grows about twice as fast after a loss when every second
segment is acknowledged, and its smallest retransmission timeout is 200 ms where it was 1 s or 500 ms ticks (`rto_min` raises it).
"""

from scpslab.scenario.presets.settings import KernelSettings

KIND = KernelSettings(
    title="TCP of the FY97 report: Reno, initial window 1, no SACK, delayed acknowledgements, fixed windows",
    # Slow start, fast retransmit and fast recovery after Van Jacobson.
    congestion="reno",
    # The report does not say; 52-byte headers in its arithmetic suggest 12 bytes of timestamps.
    timestamps=True,
    # RFC 2018 is of 1996; the report knows duplicate acknowledgements only.
    sack=False,
    # Windows were sized to the bandwidth-delay product of 132,500 bytes, which needs scaling.
    window_scaling=True,
    ecn=False,
    # RACK, tail loss probes and F-RTO came a decade or two later: they would repair what the report saw time out.
    rack=False,
    tail_loss_probe=False,
    f_rto=False,
    # Socket buffers were asked for and fixed.
    autotuning=False,
    # RFC 2001: one segment.
    initial_window=1,
    initial_receive_window=None,
    mss=None,
    rto_min_ms=None,
    # 120 segments of 1400 bytes were under way at most, 143 were advertised (A.1).
    send_buffer=168_000,
    receive_buffer=200_200,
    # Every second segment is acknowledged, or after 200 ms; a kernel of today would answer the first dozen at once.
    delayed_ack=True,
    quick_ack=False,
)
