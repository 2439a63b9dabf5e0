"""What a preset settles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class KernelSettings:
    """A host's TCP; as it is here, that of the kernel. None: the kernel's own choice.

    Sizes in bytes; `mss` and the initial windows as on a route (ip-route(8)).
    """

    title: str
    congestion: str = "cubic"
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


def reno(**settings: Any) -> KernelSettings:
    """TCP Reno of the papers' time, 1997 to 2005: with what came later switched off.

    RACK, tail loss probes and F-RTO would repair what the papers saw time out; socket buffers were asked for and fixed.
    Every second segment is acknowledged, or after 200 ms; a kernel of today would answer the first dozen at once.
    """
    then: dict[str, Any] = dict.fromkeys(("rack", "tail_loss_probe", "f_rto", "autotuning"), False)
    return KernelSettings(**then | {"congestion": "reno", "delayed_ack": True} | settings)
