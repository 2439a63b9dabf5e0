"""Workload `bulk`: a transfer over TCP, measured at both ends."""

from typing import Literal

from scpslab.plan.schema import Part
from scpslab.plan.stacks import ScpsEnd
from scpslab.plan.values import Amount, Period, Port, WholeSeed, Word
from scpslab.plan.workloads import ScpsTransfer


class Application(Part):
    """How the sending program writes: `burst_bytes` every `every_ns`, or as many as TCP takes; and after how many bytes
    it pauses for how long (ns).
    """

    burst_bytes: Amount | None = None
    every_ns: Period | None = None
    pauses: tuple[tuple[Amount, Period], ...] = ()


class Bulk(ScpsTransfer, kind="bulk"):
    """A transfer over TCP. Windows None: the kernel's own sizing; `congestion_control` None: the node's;
    `delayed_ack`: the receiver delays from the start.

    `timeout_ns`: it is given up after that. `from_scps`, `to_scps` None: the kernel carries that end; else `to_ip` is
    the program's address.
    """

    kind: Literal["bulk"] = "bulk"
    segment_bytes: Amount
    port: Port
    send_window_bytes: Amount | None
    receive_window_bytes: Amount | None
    congestion_control: Word | None
    delayed_ack: bool
    payload_seed: WholeSeed
    timeout_ns: Period
    from_scps: ScpsEnd | None
    to_scps: ScpsEnd | None
    application: Application | None = None

    @property
    def own_control(self) -> str | None:
        """The transfer's own."""
        return self.congestion_control

    def least_packets(self, rate_bps: int | None, mtu_bytes: int) -> int:
        """Full segments."""
        return -(-self.bytes_ // self.segment_bytes)
