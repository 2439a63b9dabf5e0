"""Kind `bulk`: a transfer over TCP or SCPS-TP, measured at both ends."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from scpslab.core.problems import Problem, UnfitError
from scpslab.documents.parts import Part, key
from scpslab.documents.quantities import Port, PositiveDuration, Precedence, Rate, Size
from scpslab.plan.stacks import KERNEL
from scpslab.scenario.scps_ends import fits_mtu, same_network, scps_ends
from scpslab.scenario.workloads import REQUIRED, Setting, Surroundings, Transfer, timeout_key

from scpslab.kinds.stacks.kernel.scenario import Control
from scpslab.kinds.workloads.bulk.plan import Application as Planned


class Pause(Part):
    """The sending program writes nothing for a while, and the connection stays open.

    Attributes:
        after: How many bytes of the transfer have been written by then.
        lasts: How long it lasts.
    """

    after: Size = key(example="1 MB")
    lasts: PositiveDuration = key(example="6 s")


class Application(Part):
    """How the sending program writes. Without a rate it writes as fast as TCP takes the bytes.

    Attributes:
        rate: Rate at which it writes.
        burst: Bytes that it writes at a time, as often as the rate allows. Default: a segment.
        pauses: Pauses, in ascending order.
    """

    rate: Rate | None = key(None, example="1 Mbit/s")
    burst: Size | None = key(None, example="14 kB")
    pauses: Annotated[tuple[Pause, ...], Field(max_length=1000)] = key((), example=[{"after": "1 MB", "lasts": "6 s"}])

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.rate is None and (self.burst is not None or not self.pauses):
            raise UnfitError("no rate", "a rate, or pauses alone")
        if any(later.after <= earlier.after for earlier, later in pairwise(self.pauses)):
            raise UnfitError("pauses out of order", "places that ascend")
        return self

    def plan(self, segment: int) -> Planned:
        """Its part of the plan."""
        burst, pauses = self.burst or segment, tuple((pause.after, pause.lasts) for pause in self.pauses)
        if self.rate is None:
            return Planned(pauses=pauses)
        return Planned(burst_bytes=burst, every_ns=max(1, burst * 8 * 10**9 // self.rate), pauses=pauses)


class Bulk(Transfer, kind="bulk"):
    """A bulk transfer over TCP, measured at both ends as the FY97 report did: first data packet at the sink to the
    acknowledgement of the last.

    Attributes:
        kind: The kind of workload.
        size: Bytes to send.
        segment: Data bytes per segment, without headers and options. Below 76 bytes the topology's MTU must force the
            size.
        congestion_control: Congestion control of this transfer. Default: the sending host's.
        precedence: SCPS-NP: precedence of all packets of the connection. Default: the sending host's.
        application: How the sending program writes. Default: as fast as TCP takes the bytes.
        port: TCP port.
    """

    kind: Literal["bulk"] = key(example="bulk")
    size: Size = key(example="4000000 B")
    segment: Size = key("1400 B", example="512 B")
    congestion_control: Control | None = key(None, example="vegas")
    precedence: Precedence | None = key(None, example=9)
    application: Application | None = key(None, example={"rate": "1 Mbit/s"})
    port: Port = key(5001, example=5001)
    timeout: PositiveDuration = timeout_key("3000 s", "the sender gives up")
    required: bool = REQUIRED

    def problems(self, around: Surroundings) -> Iterator[Problem]:
        """What does not fit."""
        if self.congestion_control is not None and around.hosts[self.sender].carrier is not KERNEL:
            found = f'"{self.congestion_control}" for a transfer from {self.from_}, which has another stack'
            yield Problem(("congestion_control",), found, "none", "Set it on the host.")
        if self.precedence is not None and around.hosts[self.sender].np_precedence is None:
            found = f"precedence {self.precedence} for a transfer from {self.from_}, which does not speak SCPS-NP"
            yield Problem(("precedence",), found, "none", "Add network: np to both hosts.")
        if self.application is not None and around.hosts[self.sender].carrier is not KERNEL:
            found = f"an application's rate for a transfer from {self.from_}, which has another stack"
            yield Problem(("application",), found, "the kernel's TCP", "Choose another stack, or use iperf3.")
        pauses = self.application.pauses if self.application is not None else ()
        if pauses and pauses[-1].after >= self.size:
            found = f'a pause after "{pauses[-1].after.text}" of "{self.size.text}"'
            yield Problem(("application", "pauses"), found, "less than the size", "Correct the pause.")
        yield from same_network(self, around)
        yield from fits_mtu(self, self.segment, around)
        yield from super().problems(around)

    def packets(self) -> int:
        """Each segment, and an acknowledgement of it."""
        return 2 * self.size // self.segment

    def derived(self, setting: Setting) -> Mapping[str, object]:
        """Windows and acknowledgements are those of the hosts; a program at an end has an address of its own."""
        from_scps, to_scps = scps_ends(self, self.segment, setting, self.precedence)
        return {
            **super().derived(setting),
            "to_ip": to_scps.ip if to_scps else setting.addresses[self.to],
            "send_window_bytes": setting.hosts[self.sender].send_window_bytes,
            "receive_window_bytes": setting.hosts[self.receiver].receive_window_bytes,
            "delayed_ack": setting.hosts[self.receiver].delayed_ack,
            "from_scps": from_scps,
            "to_scps": to_scps,
            "application": self.application and self.application.plan(self.segment),
        }
