"""Serial links: byte streams with PPP on both ends, or SCPS-NP."""

from collections.abc import Iterator
from typing import Annotated

from scpslab.core.problems import Problem
from scpslab.plan.links import Mtu, delay_problems
from scpslab.plan.routes import RouteOptions
from scpslab.plan.schema import Part, Range
from scpslab.plan.values import Amount, Interface, IpWithPrefix, Name, Nanoseconds, Rate

# The channel keeps buffers and vectors in the guest's memory.
MOST_BYTES, MOST_BITS = 1 << 40, 1 << 43


class Ppp(Part):
    """Options of the kernel's PPP."""

    mru_bytes: Mtu
    asyncmap: Annotated[int, Range(0, 2**32 - 1)]
    header_compression: bool


class SerialEnd(Part):
    """Where a serial link meets a host, or, without PPP, a router of SCPS-NP: that has neither interface nor address
    there.
    """

    node: Name
    interface: Interface | None
    ip: IpWithPrefix | None
    route: RouteOptions


class SerialDirection(Part):
    """One direction of a serial link; the rate is in baud."""

    name: Name
    from_: Name
    to: Name
    rate_bps: Rate
    delay_ns: Nanoseconds


class SerialLink(Part):
    """A serial line between two hosts, or two routers of SCPS-NP: then `ppp` is None, and `np_mtu_bytes` their longest
    datagram.
    """

    name: Name
    bits_per_byte: Amount
    buffer_bytes: Annotated[int, Range(1, MOST_BYTES)]
    vector_bits: Annotated[int, Range(0, MOST_BITS)]
    ppp: Ppp | None
    ends: tuple[SerialEnd, SerialEnd]
    directions: tuple[SerialDirection, SerialDirection]
    np_mtu_bytes: Mtu | None = None

    @property
    def mtu_bytes(self) -> int:
        """The longest packet that it carries."""
        return self.ppp.mru_bytes if self.ppp else self.np_mtu_bytes or 0

    def problems(self) -> Iterator[Problem]:
        """Keys whose values do not fit each other."""
        if (self.ppp is None) != (self.np_mtu_bytes is not None):
            yield Problem(("ppp",), "both or none of ppp and np_mtu_bytes", "one of them", "Correct them.")
        for number, end in enumerate(self.ends):
            if (end.ip is None or end.interface is None) != (self.ppp is None):
                found = "an address and interface without PPP, or PPP without them"
                yield Problem(("ends", number, "ip"), found, "both with PPP only", "Correct them.")
        for number, direction in enumerate(self.directions):
            yield from delay_problems(("directions", number, "delay_ns"), direction.delay_ns)
