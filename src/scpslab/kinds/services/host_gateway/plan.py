"""A gateway on a host, for the host's own unmodified programs."""

from typing import ClassVar, Literal

from scpslab.plan.network import NetworkPlan
from scpslab.plan.nodes import Host, Router, ScpsRouter
from scpslab.plan.services import Daemon
from scpslab.plan.stacks import STACKS
from scpslab.plan.values import AxisValue, Interface, Period, WholeSeed, Word


class HostGatewayService(Daemon, kind="host-gateway"):
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

    def own_ips(self, network: NetworkPlan) -> tuple[str, ...]:
        """Those of its host, whose kernel sends to its device only."""
        return tuple(ip.partition("/")[0] for node, ip in network.addresses() if node == self.node)

    @classmethod
    def can_run_on(cls, node: Host | Router | ScpsRouter) -> bool:
        """A host of stack `scps`."""
        return super().can_run_on(node) and STACKS[node.stack].runs_scps
