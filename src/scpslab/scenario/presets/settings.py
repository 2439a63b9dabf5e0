"""What a preset settles."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KernelSettings:
    """A host's TCP. None: the kernel's own choice. Sizes in bytes; `mss` and the initial windows as on a route (ip-route(8))."""

    title: str
    congestion: str
    timestamps: bool
    sack: bool
    window_scaling: bool
    ecn: bool
    rack: bool
    tail_loss_probe: bool
    f_rto: bool
    autotuning: bool
    initial_window: int | None
    initial_receive_window: int | None
    mss: int | None
    rto_min_ms: int | None
    send_buffer: int | None
    receive_buffer: int | None
    delayed_ack: bool
    quick_ack: bool
