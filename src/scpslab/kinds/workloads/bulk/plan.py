"""Workload `bulk`: a transfer over TCP, measured at both ends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from scpslab.plan.places import Places, Problem
from scpslab.plan.stacks import ScpsEnd
from scpslab.plan.values import Amount, Period, Port, WholeSeed, Word
from scpslab.plan.workloads.base import Traffic
from scpslab.plan.workloads.scps_ends import problems_of_ends


@dataclass(frozen=True, kw_only=True)
class Bulk(Traffic):
    """A transfer over TCP. Windows None: the kernel's own sizing; `congestion` None: the node's; `delayed_ack`: the
    receiver delays from the start.

    `patience_ns`: it is given up after that. `from_scps`, `to_scps` None: the kernel carries that end; else `to_ip` is
    the program's address.
    """

    kind: Literal["bulk"] = "bulk"
    bytes_: Amount
    segment_bytes: Amount
    port: Port
    send_window_bytes: Amount | None
    receive_window_bytes: Amount | None
    congestion: Word | None
    delayed_ack: bool
    payload_seed: WholeSeed
    patience_ns: Period
    from_scps: ScpsEnd | None
    to_scps: ScpsEnd | None

    @property
    def congestion_control(self) -> str | None:
        """The transfer's own."""
        return self.congestion

    @property
    def sending_program(self) -> ScpsEnd | None:
        """The program at the sending end."""
        return self.from_scps

    @property
    def receiving_program(self) -> ScpsEnd | None:
        """The program at the receiving end."""
        return self.to_scps

    def problems(self, places: Places) -> Iterable[Problem]:
        """Programs are where their stack is."""
        return problems_of_ends(self, places)


KIND = Bulk
