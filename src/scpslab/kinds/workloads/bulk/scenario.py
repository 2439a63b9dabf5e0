"""Kind `bulk`: a transfer over TCP or SCPS-TP, measured at both ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from scpslab.core.problems import Problem
from scpslab.documents.parts import key
from scpslab.documents.quantities import Port, PositiveDuration, Precedence, Size
from scpslab.plan.stacks import KERNEL
from scpslab.scenario.scps_ends import fits_mtu, same_network, scps_ends
from scpslab.scenario.workloads import REQUIRED, Setting, Surroundings, Transfer, timeout_key

from scpslab.kinds.stacks.kernel.scenario import Control


class Bulk(Transfer, kind="bulk"):
    """A bulk transfer over TCP, measured at both ends as the FY97 report did: first data packet at the sink to the
    acknowledgement of the last.
    """

    kind: Literal["bulk"] = key(says="The kind of workload.", example="bulk")
    size: Size = key(says="Bytes to send.", example="4000000 B")
    segment: Size = key(
        "1400 B",
        says="Data bytes per segment, without headers and options. Below 76 bytes the topology's MTU must force the "
        "size.",
        example="512 B",
    )
    congestion_control: Control | None = key(
        None, says="Congestion control of this transfer. Default: the sending host's.", example="vegas"
    )
    precedence: Precedence | None = key(
        None, says="SCPS-NP: precedence of all packets of the connection. Default: the sending host's.", example=9
    )
    port: Port = key(5001, says="TCP port.", example=5001)
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
        }
