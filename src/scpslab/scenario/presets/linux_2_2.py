"""Preset `linux-2.2`: TCP of the NMSU tests of 2000 and 2001 (SmallSat, Aerospace), Red Hat 6.1 with kernel 2.2.12-20, on a kernel of today."""

from scpslab.scenario.presets.settings import KernelSettings

KIND = KernelSettings(
    title="TCP of Linux 2.2 (Red Hat 6.1): Reno with SACK and timestamps, initial window 1, windows of 32,120 bytes",
    congestion="reno",
    # All three are on by default from 2.2 (apparatus B-03).
    timestamps=True,
    sack=True,
    window_scaling=True,
    ecn=False,
    rack=False,
    tail_loss_probe=False,
    f_rto=False,
    autotuning=False,
    # The papers do not say; RFC 2001.
    initial_window=1,
    initial_receive_window=None,
    mss=None,
    rto_min_ms=None,
    send_buffer=65_535,
    receive_buffer=32_120,
    delayed_ack=True,
    quick_ack=False,
)
