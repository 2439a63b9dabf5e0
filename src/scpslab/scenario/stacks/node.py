"""What a plan says of a host, whatever its stack."""

from __future__ import annotations

from dataclasses import dataclass

from scpslab.plan.np import Service, Suite, overhead_bytes
from scpslab.plan.routes import RouteOptions
from scpslab.plan.values import AxisValue


@dataclass(frozen=True)
class OwnImage:
    """A host's own image: its name, what its container may use, whether it makes a network device, further words for
    its roles.
    """

    image: str
    memory_bytes: int
    device: bool
    options: str


@dataclass(frozen=True)
class HostSp:
    """SCPS-SP on a host: suite and services, and the name of its key."""

    suite: Suite
    services: tuple[Service, ...]
    key_name: str

    @property
    def overhead_bytes(self) -> int:
        """What it adds to a packet."""
        return overhead_bytes(self.services)


@dataclass(frozen=True)
class NodePlan:
    """Kernel settings, options of every route, and what workloads on the host start from (None: the kernel's own
    choice).

    `scps`: settings of the SCPS stack on the host (None: the kernel carries its transport); `paced_by_slowest_hop`:
    they lack a rate, which the slowest hop on the way of a workload gives. `image`: what the host's own image is and
    may (None: one of images/). `np_precedence`: the default precedence of SCPS-NP (None: the host speaks IP). `sp`: how
    its programs protect segments (None: they do not).
    """

    stack: str
    sysctls: dict[str, str]
    timestamps: bool
    initcwnd: int | None = None
    initrwnd: int | None = None
    advmss: int | None = None
    rto_min_ms: int | None = None
    quickack: int | None = None
    send_window_bytes: int | None = None
    receive_window_bytes: int | None = None
    delayed_ack: bool = False
    scps: dict[str, AxisValue] | None = None
    paced_by_slowest_hop: bool = False
    image: OwnImage | None = None
    np_precedence: int | None = None
    sp: HostSp | None = None

    @property
    def no_gateway(self) -> str:
        """What keeps a host of stack `scps` from a gateway for its unmodified programs; "" if nothing does."""
        if self.np_precedence is not None:
            return "network np, whose gateways speak IP"
        if self.sp is not None:
            return "sp, whose keys belong to two programs"
        if (self.scps or {}).get("bets"):
            return "bets, which leaves holes in a program's stream"
        return ""

    def route_options(self) -> RouteOptions:
        """The options that each of the host's routes carries."""
        return RouteOptions(
            initcwnd=self.initcwnd,
            initrwnd=self.initrwnd,
            advmss=self.advmss,
            rto_min_ms=self.rto_min_ms,
            quickack=self.quickack,
        )
