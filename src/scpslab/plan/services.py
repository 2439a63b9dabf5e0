"""Services: daemons of nodes that a cell's workloads and commands use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from scpslab.plan.schema import Kinds
from scpslab.plan.values import Amount, AxisValue, Destination, Interface, Ip, Name, Nanoseconds, Period, PlainText, Port, Rate, WholeSeed, Word


@dataclass(frozen=True, kw_only=True)
class CommandService:
    """A command that a node's shell runs until the cell ends. It is ready when it listens at `ready_port`, or `ready_command` ends with 0.

    Without either it is ready once it runs.
    """

    kind: Literal["command"] = "command"
    name: Name
    node: Name
    command: PlainText
    ready_port: Port | None = None
    ready_command: PlainText | None = None
    patience_ns: Period


@dataclass(frozen=True, kw_only=True)
class GatewayService:
    """`scps gateway` on a router: connections to `far`, the networks behind the gateway `peer`, are TCP on its LAN and SCPS-TP between the two, in UDP.

    `device` is its TUN device, `rate_bps` null for a link without rate control. Its account is in records/NAME.jsonl.
    """

    kind: Literal["gateway"] = "gateway"
    name: Name
    node: Name
    device: Interface
    peer: Ip
    far: tuple[Destination, ...]
    rate_bps: Rate | None
    rtt_ns: Nanoseconds
    mtu_bytes: Amount
    congestion: Literal["none", "vj", "vegas"]
    loss: Literal["congestion", "corruption"]
    buffer_bytes: Amount | None
    set_up: Literal["connect-first", "accept-first", "early"]
    seed: WholeSeed
    patience_ns: Period


@dataclass(frozen=True, kw_only=True)
class HostGatewayService:
    """`scps gateway` on a host of stack `scps`, for the host's own unmodified programs: TCP with its kernel, SCPS-TP (or TCP, as the peer can) on its links.

    `lan_device` and `wan_device` are its TUN devices, `settings` those of SCPS-TP (`scps send --config`). Its account is in records/NAME.jsonl.
    """

    kind: Literal["host-gateway"] = "host-gateway"
    name: Name
    node: Name
    lan_device: Interface
    wan_device: Interface
    settings: dict[Word, AxisValue]
    seed: WholeSeed
    patience_ns: Period


SERVICES: dict[str, type] = {"command": CommandService, "gateway": GatewayService, "host-gateway": HostGatewayService}
# Those whose account is a record.
GATEWAYS = (GatewayService, HostGatewayService)
Service = Annotated[CommandService | GatewayService | HostGatewayService, Kinds("kind", SERVICES)]
