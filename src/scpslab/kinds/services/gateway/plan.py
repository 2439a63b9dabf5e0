"""A gateway on a router."""

from typing import ClassVar, Literal

from scpslab.plan.nodes import Router
from scpslab.plan.services import Daemon
from scpslab.plan.values import Amount, Destination, Interface, Ip, Nanoseconds, Period, Rate, WholeSeed, Word


class GatewayService(Daemon, kind="gateway"):
    """`scps gateway` on a router: connections to `far`, the networks behind the gateway `peer`, are TCP on its LAN and
    SCPS-TP between the two, in UDP.

    `device` is its TUN device, `rate_bps` null for a link without rate control, `careful_resume` what it is told of the
    path (`scps send --config`). Its account is in records/NAME.jsonl.
    """

    kind: Literal["gateway"] = "gateway"
    device: Interface
    peer: Ip
    far: tuple[Destination, ...]
    rate_bps: Rate | None
    rtt_ns: Nanoseconds
    mtu_bytes: Amount
    congestion_control: Literal["none", "vj", "vegas"]
    loss_response: Literal["congestion", "corruption"]
    careful_resume: dict[Word, Amount] | None = None
    buffer_bytes: Amount | None
    set_up: Literal["connect-first", "accept-first", "early"]
    seed: WholeSeed
    timeout_ns: Period

    RUNS_ON: ClassVar = (Router,)
    makes_device: ClassVar[bool] = True
    is_alone: ClassVar[bool] = True
    runs_scps: ClassVar[bool] = True
    writes_record: ClassVar[bool] = True
