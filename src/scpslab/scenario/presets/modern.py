"""Preset `modern`: the kernel as it comes, with buffers large enough that they are never the limit on the paths of the lab."""

from scpslab.scenario.presets.settings import KernelSettings

KIND = KernelSettings(
    title="Linux 6.12 as it comes: CUBIC, SACK, RACK, initial window 10, autotuned buffers",
    congestion="cubic",
    timestamps=True,
    sack=True,
    window_scaling=True,
    # The kernel's own 2 answers who asks; nobody here asks, and a scenario that wants ECN says so.
    ecn=False,
    rack=True,
    tail_loss_probe=True,
    f_rto=True,
    autotuning=True,
    # Routes without a word on it get 10 segments (RFC 6928).
    initial_window=None,
    initial_receive_window=None,
    mss=None,
    rto_min_ms=None,
    send_buffer=None,
    receive_buffer=None,
    delayed_ack=False,
    quick_ack=False,
)
