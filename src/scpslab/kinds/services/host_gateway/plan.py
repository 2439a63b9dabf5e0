"""A gateway on a host, for the host's own unmodified programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from scpslab.plan.nodes import Host, Router, ScpsRouter
from scpslab.plan.services import SERVICES, Daemon
from scpslab.plan.stacks import STACKS
from scpslab.plan.values import AxisValue, Interface, Period, WholeSeed, Word


@dataclass(frozen=True, kw_only=True)
class HostGatewayService(Daemon):
    """`scps gateway` on a host of stack `scps`, for the host's own unmodified programs: TCP with its kernel, SCPS-TP
    (or TCP, as the peer can) on its links.

    `lan_device` and `wan_device` are its TUN devices, `settings` those of SCPS-TP (`scps send --config`). Its account
    is in records/NAME.jsonl.
    """

    kind: Literal["host-gateway"] = "host-gateway"
    lan_device: Interface
    wan_device: Interface
    settings: dict[Word, AxisValue]
    seed: WholeSeed
    timeout_ns: Period

    RUNS_ON: ClassVar = (Host,)
    makes_device: ClassVar[bool] = True
    runs_scps: ClassVar[bool] = True
    writes_record: ClassVar[bool] = True

    @property
    def host_settings(self) -> dict[str, AxisValue]:
        """Those of the host."""
        return self.settings

    @classmethod
    def can_run_on(cls, node: Host | Router | ScpsRouter) -> bool:
        """A host of stack `scps`."""
        return super().can_run_on(node) and STACKS[node.stack].runs_scps


SERVICES.register("host-gateway", HostGatewayService)
