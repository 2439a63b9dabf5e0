"""What carries transport on a host: a folder a stack in scpslab.kinds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

from scpslab.core.kinds import Registered, Registry
from scpslab.core.problems import Problem
from scpslab.documents.parts import OneOfKinds, Part, key
from scpslab.documents.quantities import Name, PositiveMilliseconds, Size
from scpslab.plan.np import Service, Suite, overhead_bytes
from scpslab.plan.routes import NO_OPTIONS, RouteOptions
from scpslab.plan.stacks import STACKS as CARRIERS
from scpslab.plan.stacks import Carrier
from scpslab.plan.values import AxisValue

NO_ROUTE_OPTIONS = RouteOptions(**NO_OPTIONS)
# A node that passes packets between its links and a program's device, and is no router that sends redirects.
FORWARDING = {
    "net.ipv4.ip_forward": "1",
    "net.ipv4.conf.all.send_redirects": "0",
    "net.ipv4.conf.default.send_redirects": "0",
}
# The stack of a host that names none.
DEFAULT = "kernel"


@dataclass(frozen=True)
class OwnImage:
    """A host's own image: its name, what its container may use, whether it makes a network device, further words for
    its roles.
    """

    image: str
    memory_bytes: int
    device: bool
    options: str


class SpSettings(Part):
    """SCPS-SP between a host's transport and its network layer, IPv4 or SCPS-NP. Packets that do not verify are
    dropped; none leaves in clear.

    Attributes:
        suite: Cipher and integrity check.
        confidentiality: Encrypt the data; without it they stay readable, and integrity is still checked.
        authentication: Carry the addresses of both ends inside, 8 bytes a packet; the integrity check covers them in
            any case.
        key_name: Name of the key. Hosts that say the same name have the same key; others drop each other's packets.
    """

    suite: Suite = key("aes-256-gcm", example="chacha20-poly1305")
    confidentiality: bool = key(True, example=False)
    authentication: bool = key(True, example=False)
    key_name: Name = key("lab", example="other")

    @property
    def services(self) -> tuple[Service, ...]:
        """In the order of the program's own default. There is none without integrity (scps-sp §6)."""
        found: list[Service] = ["confidentiality"] if self.confidentiality else []
        return (*found, *(("authentication",) if self.authentication else ()), "integrity")

    @property
    def overhead_bytes(self) -> int:
        """What it adds to a packet."""
        return overhead_bytes(self.services)


class CarefulResume(Part):
    """Careful Resume (RFC 9959): what an earlier connection saw of the path. A connection with congestion control sends
    its first window, then half of this one, paced over a round trip.

    Attributes:
        window: Data that arrived in a round trip.
        rtt: The least round-trip time, in whole milliseconds.
    """

    window: Size = key(example="750 kB")
    rtt: PositiveMilliseconds = key(example="600 ms")

    @property
    def program(self) -> dict[str, int]:
        """The program's settings."""
        return {"resume_window": int(self.window), "resume_rtt_ms": self.rtt // 10**6}


@dataclass(frozen=True)
class NodePlan:
    """What a plan says of a host: kernel settings, options of every route, and what workloads on the host start from
    (None: the kernel's own choice).

    `scps`: settings of the SCPS stack on the host (None: the kernel carries its transport); `paced_by_slowest_hop`:
    they lack a rate, which the slowest hop on the way of a workload gives. `image`: what the host's own image is and
    may (None: one of images/). `np_precedence`: the default precedence of SCPS-NP (None: the host speaks IP). `sp`: how
    its programs protect segments (None: they do not).
    """

    stack: str
    sysctls: dict[str, str]
    timestamps: bool
    route: RouteOptions = NO_ROUTE_OPTIONS
    send_window_bytes: int | None = None
    receive_window_bytes: int | None = None
    delayed_ack: bool = False
    scps: dict[str, AxisValue] | None = None
    paced_by_slowest_hop: bool = False
    image: OwnImage | None = None
    np_precedence: int | None = None
    sp: SpSettings | None = None

    @property
    def carrier(self) -> Carrier:
        """What carries TCP on the host."""
        return CARRIERS[self.stack]

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


STACKS: Registry[type[HostPart]] = Registry("stacks", "scenario")


class HostPart(Registered, Part, registry=STACKS):
    """What a scenario says of a host. A stack's own model says its name as the only choice.

    `image_folder`: which folder of images/ its hosts are, with `containers: docker` ("": what the host does decides).
    `makes_device`: they make a network device of their own. `presets`: the title of each preset of the stack;
    `control_of`: the congestion control of each, where programs alone know it. `controls`: what a preset's can be
    replaced by.
    """

    image_folder: ClassVar[str] = ""
    makes_device: ClassVar[bool] = False
    presets: ClassVar[Mapping[str, str]] = {}
    control_of: ClassVar[Mapping[str, str]] = {}
    controls: ClassVar[tuple[str, ...]] = ()

    stack: str

    @property
    def carrier(self) -> Carrier:
        """What carries TCP on the host."""
        return CARRIERS[self.stack]

    def plan(self) -> NodePlan:
        """What a plan says of the host."""
        raise NotImplementedError

    @cached_property
    def planned(self) -> NodePlan:
        """The same, made once."""
        return self.plan()

    def problems(self) -> Iterator[Problem]:
        """Keys whose values do not fit each other."""
        yield from ()

    def settled(self) -> Mapping[str, object]:
        """Settings by name, from the preset and the host's own words (None: left to the kernel), as far as results that
        carry the name of a preset promise them.
        """
        return {}


def stack(host: Any) -> str:
    """The stack that a host names; what is no host at all is the default stack's to refuse."""
    return str(host.get("stack", DEFAULT) if isinstance(host, dict) else getattr(host, "stack", DEFAULT))


Host = Annotated[HostPart, OneOfKinds(STACKS, stack)]
