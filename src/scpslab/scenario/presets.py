"""Presets of hosts with the kernel's TCP, on a kernel of today with what came later switched off."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class KernelSettings:
    """A host's TCP; as it is here, that of the kernel. None: the kernel's own choice.

    Sizes in bytes; `mss` and the initial windows as on a route (ip-route(8)).
    """

    title: str
    congestion_control: str = "cubic"
    timestamps: bool = True
    sack: bool = True
    window_scaling: bool = True
    # The kernel's own 2 answers who asks; nobody here asks, and a scenario that wants ECN says so.
    ecn: bool = False
    rack: bool = True
    tail_loss_probe: bool = True
    f_rto: bool = True
    autotuning: bool = True
    # Routes without a word on it get 10 segments (RFC 6928).
    initial_window: int | None = None
    initial_receive_window: int | None = None
    mss: int | None = None
    rto_min_ms: int | None = None
    send_buffer: int | None = None
    receive_buffer: int | None = None
    delayed_ack: bool = False
    quick_ack: bool = False


# TCP Reno of the papers' time, 1997 to 2005. RACK, tail loss probes and F-RTO would repair what the papers saw time
# out; socket buffers were asked for and fixed. Every second segment is acknowledged, or after 200 ms; a kernel of today
# would answer the first dozen at once. The initial window is that of RFC 2001: one segment.
RENO = KernelSettings(
    title="TCP Reno of 1997 to 2005",
    congestion_control="reno",
    rack=False,
    tail_loss_probe=False,
    f_rto=False,
    autotuning=False,
    initial_window=1,
    delayed_ack=True,
)
# Buffers large enough that they are never the limit on the paths of the lab.
MODERN = KernelSettings(title="Linux 6.12 as it comes: CUBIC, SACK, RACK, initial window 10, autotuned buffers")
PRESETS = {
    # The MITRE FY97 report (sections 3.1 and A.1). Two things cannot be switched off: Linux counts acknowledged bytes,
    # so its window grows about twice as fast after a loss when every second segment is acknowledged, and its smallest
    # retransmission timeout is 200 ms where it was 1 s or 500 ms ticks (`rto_min` raises it).
    "fy97-reno": replace(
        RENO,
        title="TCP of the FY97 report: Reno, initial window 1, no SACK, delayed acknowledgements, fixed windows",
        # Whether there were timestamps the report does not say; 52-byte headers in its arithmetic suggest their 12
        # bytes. RFC 2018 is of 1996; the report knows duplicate acknowledgements only.
        sack=False,
        # 120 segments of 1400 bytes were under way at most, 143 were advertised (A.1): for the bandwidth-delay product
        # of 132,500 bytes, which needs scaling.
        send_buffer=168_000,
        receive_buffer=200_200,
    ),
    # The NMSU tests of 1999 (ITC), Red Hat 5.2. The paper calls it stock; windows are those of the kernel's captures of
    # the period. As in `fy97-reno`, acknowledged bytes are counted, and the first segments of a connection are
    # acknowledged at once, unless a workload sees to that. The first retransmission timeout is 1 s (RFC 6298) where it
    # was 3 s: on slow lines that sends segments twice; `rto_min` raises it together with the smallest one.
    "linux-2.0": replace(
        RENO,
        title="TCP of Linux 2.0 (Red Hat 5.2): Reno, initial window 1, no SACK, no timestamps, windows of 31 KiB",
        # Acknowledgements of 40 bytes (ITC, unbalanced tests) say that there were none; SACK and window scaling came
        # with 2.2 too.
        timestamps=False,
        sack=False,
        window_scaling=False,
        send_buffer=65_535,
        receive_buffer=31_744,
    ),
    # The NMSU tests of 2000 and 2001 (SmallSat, Aerospace), Red Hat 6.1 with kernel 2.2.12-20. SACK, timestamps and
    # window scaling are on by default from 2.2 (apparatus B-03). The papers do not say the initial window.
    "linux-2.2": replace(
        RENO,
        title="TCP of Linux 2.2 (Red Hat 6.1): Reno with SACK and timestamps, initial window 1, "
        "windows of 32,120 bytes",
        send_buffer=65_535,
        receive_buffer=32_120,
    ),
    # The tests of 2005 (JZUS), Red Hat 7.3. JZUS Table 1: timestamps and window scaling on, buffers of 65,536 bytes,
    # initial window 3 segments (4344 bytes).
    "linux-2.4": replace(
        RENO,
        title="TCP of Linux 2.4 (Red Hat 7.3): Reno with SACK and timestamps, initial window 3, "
        "buffers of 65,536 bytes",
        initial_window=3,
        send_buffer=65_536,
        receive_buffer=65_536,
    ),
    "modern": MODERN,
    # The same with one of today's congestion controls, whatever the kernel's own choice may become.
    "cubic": replace(MODERN, title="Linux 6.12 with CUBIC", congestion_control="cubic"),
    "bbr": replace(MODERN, title="Linux 6.12 with BBR", congestion_control="bbr"),
    "reno": replace(MODERN, title="Linux 6.12 with Reno", congestion_control="reno"),
}
